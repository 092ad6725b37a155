"""The parts that the laboratories of all bots share. `script` draws the people's messages and the deaths of
processes. `model` is asked by the bots, `run` carries a schedule out and keeps the observations, and `stalls` knows
when the machine stood still."""

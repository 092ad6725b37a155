"""The parts that both stores share."""

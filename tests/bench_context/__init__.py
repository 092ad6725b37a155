"""How much of a long conversation a context engine keeps, measured without a model: `python -m tests.bench_context`.

A conversation is written from a seed (`trace`), with things in it that are needed later (`facts`). It is
talked through with a real gateway, store included, under virtual time (`replay`), against a model that
follows the script (`model`) and a summariser that is as good or bad as it is told to be (`summarisers`).
What every request held is looked at when it is made (`observing`), summed up (`figures`) and printed
(`report`). The same seed prints the same report, byte for byte.
"""

"""Measurements: `python -m tests.bench [names]` prints figures and asserts nothing.

Absolute figures belong to a machine and to what else runs on it, so each comes with a ratio or with
CPU time (of this process, all threads) wherever one says more. A module that `__main__` names is one bench: it
has a `TITLE`, a docstring that says what it measures, and `async def measure() -> Rows`.

A folder is a program of its own: `python -m tests.bench.context`.
"""

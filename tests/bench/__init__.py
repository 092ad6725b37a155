"""Measurements: `python -m tests.bench [names]` prints figures and asserts nothing.

Absolute figures belong to a machine and to what else runs on it, so each comes with a ratio or with
CPU time (of this process, all threads) wherever one says more. Every module here is one bench: it
has a `TITLE`, a docstring that says what it measures, and `async def measure() -> Rows`.
"""

"""Bugs that are put into a copy of the program on purpose: tests that never failed prove nothing.

`make planted` puts in one bug of the table (`bugs`) after the other and runs the quick tests that are about that
part; one of them must fail. `python -m tests.planted NAME…` tries those bugs only.
"""

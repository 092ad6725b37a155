"""The parts of `docs/` that come from the program: pictures of real sessions, and tables of the code's declarations.

`make docs` writes them again. A test compares each file with what the program shows today.
"""

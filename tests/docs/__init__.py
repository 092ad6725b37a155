"""What `docs/` takes from the program: pictures of real sessions, and tables of what the code declares.

`make docs` writes them again. A test compares each file with what the program shows today.
"""

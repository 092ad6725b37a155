"""Crash runs of the page: a person writes, two tabs follow, connections are cut, and the process is killed.

`script` draws a schedule, `bot` is the program, `laboratory` carries a run out and says what was wrong.
"""

"""Reminders in the crash laboratory: every moment of each fires once and is shown once, whatever is killed.

`script` draws a run from its seed, `bot` is a process of it, `laboratory` carries the run out and looks at what is
left in the store and on a platform that is a file. On Redis several processes fire at the same time.
"""

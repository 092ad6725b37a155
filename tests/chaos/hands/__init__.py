"""Hands in the crash laboratory: helpers, commands in the background and changes of files, all at once in one turn.

`script` draws a run from its seed, `model` is the model of all and sees what it was told, `laboratory` kills the real
program at those moments and looks at what is left: on the disk, among the processes and in what the person was shown.
"""

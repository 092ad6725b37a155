"""Backups: made, kept for a while, tried, and put in a store's place.

archive       the file: its form, how it is written and read
sealing       age, the program that encrypts it
making        the store and the folder beside it into an archive, and where that goes
generations   which backups of a folder are kept
restoring     an archive in the place of the store, or looked through aside
schedule      the program makes them by itself
"""

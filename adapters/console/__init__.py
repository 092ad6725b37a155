"""The terminal: JSON lines for programs, plain pipes for shells, a prompt for people.

`platform` describes it. `adapter` has the first two and chooses, `interactive` is the third, imported only by who needs
it: it pulls in a terminal library that the other two do without.
"""

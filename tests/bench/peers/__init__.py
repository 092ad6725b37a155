"""Legato's compressor and gateway beside hermes-agent's: `make bench-peers`.

hermes-agent is installed into a folder of its own (`build/peers`), is no dependency, and nothing of it is kept here.
Both packages have a room called `gateway`, so each side runs in a process of its own interpreter: `ours.py` and
`gateway_ours.py`, and `theirs.py` and `gateway_theirs.py`, which import nothing of this project.
"""

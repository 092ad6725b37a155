"""Frozen data that every room speaks: no I/O, no decisions beyond naming."""

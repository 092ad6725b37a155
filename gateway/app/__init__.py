"""Puts the gateway together, starts it and ends it."""

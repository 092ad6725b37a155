"""Slash commands: one small file per family, the same on every platform."""

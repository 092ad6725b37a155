"""Moves a whole store into another."""

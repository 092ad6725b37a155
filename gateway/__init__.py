"""Legato: a chat gateway whose conversations never outgrow the model's window."""

__version__ = "1.0.0"

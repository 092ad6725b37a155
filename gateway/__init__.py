"""Legato: a chat gateway whose conversations never outgrow the model's window."""

__version__ = "0.1.0"

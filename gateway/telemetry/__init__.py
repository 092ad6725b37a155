"""Logs and named points: how the running gateway tells what it does."""

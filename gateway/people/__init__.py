"""The people who may talk, and those who decide."""

"""What people install is tried as they would: `python -m tests.release` (see `__main__`)."""

"""What a store does, written once: plain functions of a `Space`."""

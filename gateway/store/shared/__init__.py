"""What both stores do in the same way."""

"""Commands that a person types in a shell."""

"""Crash tests: kill the program at every named point of a message's life and look at what is left."""

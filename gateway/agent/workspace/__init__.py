"""The folder of a conversation: what its tools read, write and run in."""

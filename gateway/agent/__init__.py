"""The agent: a loop of model calls and tools over one conversation."""

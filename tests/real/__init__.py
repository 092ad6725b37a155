"""Programs that other people wrote, each in an environment of its own, for the slow tests."""

"""What outlives sessions: the rules of memory, its service, and the flush that fills it."""

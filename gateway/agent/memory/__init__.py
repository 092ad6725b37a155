"""The memory beyond sessions: its rules, its service, and the flush that fills it."""

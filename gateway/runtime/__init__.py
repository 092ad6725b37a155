"""Time, ids, errors, tasks, token counts, redaction and logs: used by every room."""

"""Time, ids, errors, tasks, token counts, redaction, logs and metrics: used by every room."""

"""Who may talk, and who decides."""

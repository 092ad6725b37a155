"""One message, from receipt to reply."""

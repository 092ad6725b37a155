"""A package of someone else's: a platform, a wire format, a tool and a slash command, registered as entry points."""

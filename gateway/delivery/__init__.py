"""Everything that people are shown, on its way to a platform."""

"""Markdown as models write it, for platforms that show less of it: read, laid out, and cut into messages."""

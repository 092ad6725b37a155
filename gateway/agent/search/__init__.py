"""Searches of the web. Nothing here is loaded before one is set up (`tools.search`)."""

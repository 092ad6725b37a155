"""Loopback servers that speak the wire protocols of the world outside, limits and failures included."""

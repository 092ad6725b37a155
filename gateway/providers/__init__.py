"""Models behind one port (`base`), one module per API."""

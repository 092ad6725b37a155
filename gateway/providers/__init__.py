"""Models behind one port (`base`), one package per API."""

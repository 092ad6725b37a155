"""What outlives the process: one port (`base`), one package per backend."""

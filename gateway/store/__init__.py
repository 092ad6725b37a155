"""What outlives the process: one port (`port`), one package per backend."""

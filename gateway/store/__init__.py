"""Everything that outlives the process: one port (`port`), one package for each backend."""

"""Tools of MCP servers (https://modelcontextprotocol.io): processes on this machine, or addresses."""

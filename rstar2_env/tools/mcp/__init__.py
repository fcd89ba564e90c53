"""Tools of MCP servers (Model Context Protocol): the options, the connection, and the tools of one environment."""

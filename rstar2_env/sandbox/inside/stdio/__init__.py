"""Runs a long-lived program of the user, such as an MCP server on standard input and output, under isolation."""

"""Helpers of the command line: current subcommand, Ctrl-C during imports, documentation pages."""

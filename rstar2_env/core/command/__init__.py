"""Helpers of the command line: the subcommand's name, Ctrl-C during imports, documentation pages, links from errors."""

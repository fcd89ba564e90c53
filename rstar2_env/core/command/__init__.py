"""Modules about the command line: the running command, Ctrl-C while it starts, its documents, and pages of errors."""

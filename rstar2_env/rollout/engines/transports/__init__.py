"""Transports: ways of sending new weights to the servers of an engine, one file each; see ``base``."""

"""Ways in which new weights reach the servers of an engine, one file each; see ``base``."""

"""One optimizer step in plain torch, written to be read and to be compared with other backends."""

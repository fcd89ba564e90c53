"""One optimizer step in plain torch, to read, and to compare other backends with."""

"""Reference backend: one optimizer step in plain torch, with which other backends are compared."""

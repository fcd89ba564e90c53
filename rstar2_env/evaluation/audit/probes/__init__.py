"""The probes of an audit; each probe is a check that searches for findings of one kind."""

"""The probes of an audit; each looks for findings of one kind."""

"""The kinds of targets of an audit; each file writes the setup of one framework."""

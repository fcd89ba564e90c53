"""One training run on TRL: its construction, checks, hooks and end."""

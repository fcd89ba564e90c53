"""One training run on TRL: its construction, its checks, its hooks, how it stops."""

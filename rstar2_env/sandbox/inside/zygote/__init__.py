"""The zygote, and what its children do: a program or a session, from the fork to the report."""

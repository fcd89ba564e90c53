"""The zygote, and its children: a program or a session, from the fork to the report."""

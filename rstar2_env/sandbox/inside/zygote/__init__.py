"""The zygote and its children, which run a program or a session each, from the fork to the report."""

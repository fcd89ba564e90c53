"""The zygote (a warm interpreter), and the processes forked from it, which run programs and sessions."""

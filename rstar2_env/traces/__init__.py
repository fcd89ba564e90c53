"""Tool-use traces for a cold start, and the mistakes that are put into them on purpose."""

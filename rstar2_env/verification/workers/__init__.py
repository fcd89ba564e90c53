"""Grades answers in processes that may be killed: the pool, a worker, and the messages between them."""

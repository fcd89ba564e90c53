"""Grading in processes that may be killed: the pool, a worker, the frames between them."""

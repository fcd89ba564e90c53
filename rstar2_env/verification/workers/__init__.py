"""Grading in processes that may be killed: the pool, one worker, the frames between them."""

"""Grade answers in processes that may be killed: the pool, a worker, the messages between them."""

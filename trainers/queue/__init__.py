"""The queue in which the episodes of a step wait until a process has room for them.

``requests`` describes the episodes, ``desk`` decides which process plays which episode and when, ``local`` is the queue
of one process, ``shared`` is the queue of several processes, and ``wire`` carries the messages between them.
"""

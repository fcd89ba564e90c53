"""``rstar2 doctor --prove``: runs kernels, engines, a sharded step and training on this machine, within a time limit.

``run`` starts each part in a process of its own and ends it in time; ``part`` is that process; ``findings`` has the
results; ``machine_speed``, ``ranks``, ``engines`` and ``learning`` are the parts.
"""

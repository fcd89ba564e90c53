"""``rstar2 doctor --prove``: runs kernels, engines, a sharded step and training on this machine, within a time limit.

``run`` starts each part in a separate process and enforces the time limit; ``part`` is the program of that process;
``findings`` defines the results; ``machine_speed``, ``ranks``, ``engines`` and ``learning`` are the parts.
"""

"""The checks of ``rstar2 doctor``, one file a family. Each is a function of a ``Machine`` and returns a ``Finding``."""

"""Servers and trainers of one machine from one command: ``rstar2 launch``.

Which devices serve and which train (``devices``), the commands that follow from it (``commands``), and their processes
from the first start to the last end (``supervisor``). For several machines see docs/scaling.md.
"""

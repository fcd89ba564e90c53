"""Servers and trainers of one machine from one command: ``rstar2 launch``.

Which devices serve and which train (``devices``), the commands that follow from it (``commands``), a command as a
process (``running``), servers that are kept (``servers``), which a stage of a pipeline has too, and all processes from
the first start to the last end (``supervisor``). For several machines see docs/scaling.md.
"""

"""Starts servers and trainers on one machine with one command: ``rstar2 launch``.

``devices`` divides devices between serving and training, ``commands`` builds the commands, ``running`` runs a command
as a process, ``servers`` keeps servers running (also for pipeline stages), and ``supervisor`` manages all processes
until the last of them has ended. For several machines see docs/scaling.md.
"""

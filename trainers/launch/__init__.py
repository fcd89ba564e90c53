"""Starts servers and trainers on one machine with one command: ``rstar2 launch``.

``devices`` divides devices between serving and training, ``commands`` builds the commands, ``running`` runs a command
as a process, ``servers`` keeps servers running (also for pipeline stages), and ``supervisor`` runs the trainer and its
servers until the trainer ends. For several machines see docs/scaling.md.
"""

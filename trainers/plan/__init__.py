"""Estimates the memory of a run and the time of a step before anything is started: ``rstar2 plan``.

The estimates are computed from a model's configuration, the options of a run and the data sheets of devices, without
torch. A plan lists its assumptions. ``published`` compares plans with published measurements.
"""

"""How large a run gets, and how long a step takes, before anything is started: ``rstar2 plan``.

Computed from a model's configuration, the options of a run and the data sheets of devices, without torch. What a plan
assumes is part of it. ``published`` compares it with what others measured.
"""

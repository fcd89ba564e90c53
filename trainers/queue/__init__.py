"""One queue of episodes for all processes of a run: each plays what it has room for, whoever's group it is of.

``job`` is what is played, ``desk`` decides who plays what and when, ``wire`` carries messages between processes, and
``round`` is one process's side of it while a round of groups is played.
"""

"""Distributes episodes over several engines: chooses an engine for each episode, and decides when it may begin.

How many episodes are played at once is the option ``max_in_flight`` of the player (``rollout/player.py``) and of a
trainer (``rollout.max_in_flight``, ``trainers/options/config.py``); ``adaptive_in_flight`` lowers it while an engine's
cache is full.
"""

"""Distributes episodes over several engines: chooses an engine for each episode, and decides when it may begin.

The option ``max_in_flight`` of the player (``rollout/player.py``) and of a trainer (``rollout.max_in_flight``,
``trainers/options/config.py``) limits how many episodes are played at once; ``adaptive_in_flight`` lowers this limit
while an engine's cache is full.
"""

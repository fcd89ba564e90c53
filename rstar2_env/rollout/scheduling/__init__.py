"""Distributes episodes over several engines: chooses an engine for each episode, and decides when it may begin."""

"""Adapters to the environments, agents and formats of other frameworks; ``import rstar2_env`` imports none of them."""

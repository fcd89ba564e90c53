"""Adapters that serve these environments to other frameworks; nothing here is imported by ``import rstar2_env``."""

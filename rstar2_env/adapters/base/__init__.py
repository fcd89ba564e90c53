"""Shared parts of the adapters: environments of other frameworks, served environments, agents, messages, randomness."""

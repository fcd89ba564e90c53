"""Transports: ways to send new weights to an engine's servers. Each file has one; ``base`` has the interface."""

"""Evaluation: playing one episode or many, summaries and logs, validation, cards of environments."""

"""Conditions of answers: they are read, compared with those of the gold and the question, and decided on a domain."""

"""Conditions of answers, such as "for x > 0": reads them, and decides whether they change the answer."""

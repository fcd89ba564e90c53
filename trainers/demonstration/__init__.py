"""Demonstration that ``make train`` runs: a tiny new model learns to use the tool."""

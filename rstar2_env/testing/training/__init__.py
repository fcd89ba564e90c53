"""Checks for the parts of a trainer: one for each slot, and one for recipes. Only those of losses load torch."""

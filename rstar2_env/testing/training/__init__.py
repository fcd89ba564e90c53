"""Checks for the parts of a trainer: one for each slot, and one for recipes. Only the checks of losses load torch."""

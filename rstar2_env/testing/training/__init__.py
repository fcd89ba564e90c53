"""Checks for the parts of a trainer: one for each kind of part (reward, loss, sampler, ...), and one for recipes.

Only the checks of losses load torch.
"""

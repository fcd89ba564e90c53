"""Samplers: which problems a step plays."""

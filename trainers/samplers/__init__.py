"""Samplers: choose which problems a step plays."""

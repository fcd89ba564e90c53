"""Recipes: one file for each published algorithm."""

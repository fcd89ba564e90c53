"""Declares, parses and checks options, and finds parts with options by name in registries or in the user's code."""

"""Advantages: how the rewards of a group become numbers to train on."""

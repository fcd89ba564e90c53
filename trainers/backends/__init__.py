"""Backends: the libraries that compute the loss and take the optimizer steps."""

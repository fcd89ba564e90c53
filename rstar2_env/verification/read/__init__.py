"""Parses the text of an answer into a tree, and finds the answer in a longer text."""

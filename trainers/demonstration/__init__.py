"""The demonstration of ``make train``: from nothing to a model that uses the tool."""

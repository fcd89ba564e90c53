"""The demonstration of ``make train``: it trains a new model until it uses the tool."""

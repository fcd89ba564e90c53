"""Checks of token ids: of the rows that a run trained on, and of a model's tokenizer and chat template."""

"""Records of a run: checkpoints, resuming, the model card, the final result."""

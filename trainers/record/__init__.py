"""Records of a run: checkpoints, resuming, the model card, the closing verdict."""

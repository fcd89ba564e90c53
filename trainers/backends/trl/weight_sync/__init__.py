"""The engine of a run and its weights: weight sync, copies with older weights, LoRA adapters."""

"""The loss: terms that are added up, how they are averaged, and the correction for what the engine computes apart."""

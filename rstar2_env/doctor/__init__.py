"""``rstar2 doctor``: checks whether this machine is ready for training, and suggests fixes."""

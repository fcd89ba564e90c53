"""``rstar2 doctor``: is this machine fit to train, and what to change where it is not."""

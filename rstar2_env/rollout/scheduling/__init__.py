"""Several engines behind one: which episode plays where, and when it may begin."""

"""Several engines behind one interface: the engine on which each episode plays, and when it may begin."""

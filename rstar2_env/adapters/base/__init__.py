"""Code that several adapters share: for other frameworks' environments and agents, serving, messages, randomness."""

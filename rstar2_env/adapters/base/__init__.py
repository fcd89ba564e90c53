"""Code that several adapters share: base classes, HTTP serving, chat messages, and global random states."""

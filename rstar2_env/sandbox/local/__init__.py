"""The ``local`` provider: the warden is a process on this machine."""

"""The ``local`` provider: the warden as a process of this machine."""

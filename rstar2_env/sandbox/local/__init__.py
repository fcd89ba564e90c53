"""The sandbox provider ``local``: runs programs on this machine, supervised by a separate process."""

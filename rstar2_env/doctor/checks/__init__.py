"""The checks of ``rstar2 doctor``, one file per family. A check maps a ``MachineState`` to a ``DoctorResult``."""

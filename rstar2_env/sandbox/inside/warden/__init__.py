"""The warden: a process that receives jobs from the caller, passes them to child processes, and enforces limits."""

"""Isolation by the kernel: namespaces, file system, system-call filter, Landlock, control groups."""

"""What holds a program, through the kernel: namespaces, file system, system-call filter, Landlock, control groups."""

"""Programs of the sandbox itself: the warden, which receives every job, and the zygote, which forks processes for jobs.

The module ``launch`` starts both in new Python interpreters. They import only the standard library and the modules of
this folder. A process that is forked from the zygote runs a model's code and inherits the zygote's memory, so the
zygote must not hold secrets. Therefore jobs and outputs pass directly between the warden and the forked process.
"""

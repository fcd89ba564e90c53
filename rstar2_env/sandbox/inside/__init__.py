"""Programs of the sandbox itself: the warden, which receives every job, and the zygote, which forks processes for jobs.

The warden supervises programs; the zygote is a warm interpreter. Both are started as fresh interpreters (``launch``)
and import only the standard library and the modules of this folder. A child of the zygote runs a model's code and
inherits the zygote's memory, so the zygote must not hold secrets: jobs and outputs are sent directly between the warden
and a child.
"""

"""Programs that run next to the caller: the warden, which receives every job, and the zygote, which receives none.

They are started as fresh interpreters and never import the rest of the package, only the standard library and the
modules of this folder through relative imports (see ``launch``). The zygote forks the children that run a model's code,
so it must not hold secrets; jobs and outputs are sent directly between the warden and a child.
"""

"""The programs that run beside the caller: the warden, which sees every job, and the zygote, which sees none.

They are started as fresh interpreters and never import the rest of the package: only the standard library, and one
another through relative imports (see ``launch``). The zygote forks the children that run a model's code, so nothing
that passes through it may be secret; jobs and outputs go straight between the warden and a child.
"""

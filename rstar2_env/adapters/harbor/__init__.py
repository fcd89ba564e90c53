"""Harbor (``harbor`` 0.25): plays its task folders in the sandbox, and writes this package's problems as such folders.

Covered: tasks of one step that need no image of their own; ``read_task`` refuses every other task and names the field,
the file or the line. Not covered: Harbor's agents, registry and cloud environments, and tasks that need the network.
"""

from rstar2_env.adapters.harbor.env import HarborEnv
from rstar2_env.adapters.harbor.folder import HarborTask, read_task, read_tasks

__all__ = ["HarborEnv", "HarborTask", "read_task", "read_tasks"]

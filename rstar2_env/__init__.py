"""Math problems with a Python tool as Gymnasium text environments, and trainers swapped by name.

Importing the package registers its environments with Gymnasium::

    import gymnasium as gym
    import rstar2_env

    env = gym.make("rstar2/MathTool-v0")

Nothing heavy is imported here: torch, TRL, vLLM, Ray and Docker are loaded only by the parts that use them.
"""

from __future__ import annotations

from rstar2_env.core.plugins import load_env_plugins
from rstar2_env.core.registry import import_modules
from rstar2_env.env.vector import add_vector_forms

__version__ = "0.1.0"

import_modules("rstar2_env.envs_registry")
load_env_plugins()
add_vector_forms()

del add_vector_forms, import_modules, load_env_plugins

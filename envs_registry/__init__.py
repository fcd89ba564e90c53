"""Environments, one file each: the problems, the prompt, the reward and the Gymnasium id."""

if __name__ != "rstar2_env.envs_registry":
    raise ImportError(
        f"This folder is the package rstar2_env.envs_registry and was imported as {__name__!r}, which would make a "
        "second copy of its registry. Install the distribution (pip install -e .) and import rstar2_env.envs_registry."
    )

"""Environments, one file each: the problems, the prompt, the reward and the Gymnasium id."""

if __name__ != "rstar2_env.envs_registry":
    raise ImportError(
        f"This folder is the package rstar2_env.envs_registry; importing it as {__name__!r} would create a second copy "
        "of its registry. Install the distribution (pip install -e .) and import rstar2_env.envs_registry."
    )

"""Loads environments of other distributions, found through the entry-point group ``rstar2_env.envs``.

The environments are loaded when ``rstar2_env`` is imported, and the distribution of each id is recorded. An entry point
names a module, or a function, that registers ids with Gymnasium. A broken entry point is left out with a warning that
names its distribution. Not covered: agents, trainers, dialects and families, which have their own groups (see
``rstar2_env.core.options.registry``).
"""

from __future__ import annotations

import inspect

import gymnasium as gym

from rstar2_env.core.options.entry_points import LoadedPoint, load_entry_points

GROUP = "rstar2_env.envs"

plugin_ids: dict[str, str] = {}
"""Name of the distribution that registered each environment id."""

points_without_ids: list[LoadedPoint] = []
"""The entry points that did not load, or that registered no environment id."""


def load_env_plugins() -> None:
    """Load every entry point of ``rstar2_env.envs``; if one fails, issue a ``RuntimeWarning`` and continue."""
    known = set(gym.registry)
    for point in load_entry_points(GROUP, "environment", lambda part: inspect.isfunction(part) and part()):
        new = sorted(set(gym.registry) - known)
        plugin_ids.update(dict.fromkeys(new, point.distribution))
        if point.fault or not new:
            points_without_ids.append(point)
        known = set(gym.registry)

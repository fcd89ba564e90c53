"""Episodes as trajectories of ATIF 1.8 (Agent Trajectory Interchange Format, Harbor's RFC 0001), and back.

The format is plain JSON, so it needs no additional package; ``tests/bridges`` checks it against the package ``atif``.
Modules: ``write`` converts an episode to a trajectory, ``read`` converts one back, ``files`` handles trajectory files.
"""

from __future__ import annotations

from rstar2_env.adapters.atif.read import Imported, read_trajectory
from rstar2_env.adapters.atif.write import trajectory_of

__all__ = ["Imported", "read_trajectory", "trajectory_of"]

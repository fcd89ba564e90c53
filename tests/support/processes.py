"""The processes of ``rstar2_env.testing.training.processes`` under the names that tests have for them."""

from rstar2_env.testing.training.processes import ThreadRanks as ThreadRanks
from rstar2_env.testing.training.processes import in_each as on_ranks
from rstar2_env.testing.training.processes import in_processes as all_ranks

__all__ = ["ThreadRanks", "all_ranks", "on_ranks"]

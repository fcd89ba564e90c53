"""Find the source, the difficulty and the gold answer of each episode's problem, for the run's folder.

These facts are looked up when an episode is written to the run's folder. An ``Episode`` does not contain them, so they
cannot reach the policy, a reward, a selector or a sampler.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from typing import Any

from rstar2_env.core.run_folder import ExtraKeys
from rstar2_env.evaluation.figures.tally import difficulty_of
from rstar2_env.problems import ProblemSource, UnknownProblemError

MOST_GOLD = 4000
"""Maximum number of characters of a recorded gold answer. A longer one, such as a list of test cases, is omitted, not
cut, because readers may grade with it or compare it (``rstar2 verify --run``, ``rstar2 compare``)."""
_REMEMBERED = 4096
"""Maximum number of problems in the cache, which exists because different episodes often have the same problem."""
_LOG = logging.getLogger(__name__)


def about_problems(source: ProblemSource | None) -> ExtraKeys:
    """Return a function that looks up facts about an episode's problem, with the keys that ``rstar2 eval`` writes.

    The facts are empty without a source, and for a problem that is not in the source, such as one that the policy
    proposed.

    Args:
        source: The problems of the environment that played the episodes.

    Returns:
        A function that returns the keys ``problem_source`` and ``difficulty``, each empty if the problem does not have
        it, and ``gold``, the gold answer, which is ``None`` if it has more than ``MOST_GOLD`` characters.
    """

    @functools.lru_cache(_REMEMBERED)
    def known(problem_id: str) -> Mapping[str, Any]:
        if source is None or not problem_id:
            return {}
        try:
            problem = source.get(problem_id)
            gold = problem.answer if len(problem.answer) <= MOST_GOLD else None
            return {"problem_source": problem.source, "difficulty": difficulty_of(problem), "gold": gold}
        except UnknownProblemError:
            return {}
        except Exception:
            # A user's source may fail in any way; recording facts for readers must not end the training.
            _LOG.warning(
                "The source, the difficulty and the gold answer of the problem %r are not recorded, because the "
                "problem could not be read.",
                problem_id,
                exc_info=True,
            )
            return {}

    return lambda episode: known(episode.problem_id)

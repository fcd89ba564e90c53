"""What the folder of a run says of the problem of each episode: its source, its difficulty and its gold answer.

It is looked up when an episode is written, for whoever reads the folder. An ``Episode`` does not have it, so neither
the policy nor a reward, a selector or a sampler finds it there.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from typing import Any

from rstar2_env.core.episode import Episode
from rstar2_env.core.run_folder import Beside
from rstar2_env.evaluation.figures.tally import difficulty_of
from rstar2_env.problems import ProblemSource, UnknownProblemError

MOST_GOLD = 4000
"""Characters of the longest gold answer that is recorded. A longer one, such as a list of test cases, is left out and
not cut, since what reads it may grade with it or compare it (``rstar2 reverify``, ``rstar2 compare``)."""
_REMEMBERED = 4096
"""Problems that are looked up once: those of a step's groups, and of the held-out ones that come again."""
_LOG = logging.getLogger(__name__)


def about_problems(source: ProblemSource | None) -> Beside:
    """What is known of an episode's problem, by the names that ``rstar2 eval`` writes it under.

    An episode of a problem that the source does not have (one that the policy posed, for example), and any episode
    where there is no source, has none of these keys.

    Args:
        source: The problems of the environment that played the episodes.

    Returns:
        ``problem_source`` and ``difficulty``, each empty where the problem does not say, and ``gold``, which is
        ``None`` where it is longer than ``MOST_GOLD``.
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
            # Source code of one's own may fail in any way; what is recorded for readers must not end the training.
            _LOG.warning("Nothing is recorded of the problem %r: it could not be read.", problem_id, exc_info=True)
            return {}

    def about(episode: Episode) -> Mapping[str, Any]:
        return known(episode.problem_id)

    return about

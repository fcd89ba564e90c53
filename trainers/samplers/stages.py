"""``stages``: trains on one domain after the other, each for a number of rollouts (AceReason, arXiv 2505.16400).

The paper trains on mathematics first and then on code, and excludes easy problems in later stages. It also increases
the length of episodes from 8K to 32K tokens; use the hook ``length_stages`` for this.
"""

# This module is longer than most parts because it reports figures and has a state for checkpoints.

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Rule, Seed, checked
from rstar2_env.core.saved_attributes import SavedAttributes
from rstar2_env.problems import ProblemSource

from .base import SAMPLERS, GroupResult, Start
from .kinds import Kinds
from .rates import Rates

_REDRAWS = 20
"""Maximum number of redraws to find a problem whose pass rate is not above ``drop_above``."""


class Stages(SavedAttributes):
    """Draws one kind of problem after the other, each for a number of rollouts (AceReason-Nemotron, arXiv 2505.16400).

    Each stage draws problems of one kind, such as a domain. The last stage lasts until the end of the run.

    Args:
        seed: Seed of all draws.
        problems: The environment's source of problems.
        by: Field of the problems that names their kind, if the source is not a mixture.
        order: The kinds, one per stage (``math+code``); a kind may be repeated. By default, all kinds in the order in
            which they occur.
        steps: Rollouts of each stage except the last; one number applies to all. A rollout is trained on for up to
            ``optim.updates_per_rollout`` times ``optim.minibatches`` optimizer steps, which hooks count.
        drop_above: If the pass rate of a problem's latest group was above this value, another problem is drawn instead,
            also in a later stage of the same kind; after 20 redraws, any problem is used. ``None`` draws every problem
            again.

    Raises:
        ConfigurationError: There are fewer than two kinds of problems, or ``steps`` does not match the stages.
    """

    saved = ("_kinds", "_steps", "_rates")

    @checked
    def __init__(
        self,
        seed: Seed = 0,
        problems: ProblemSource | None = None,
        *,
        by: str = "source",
        order: tuple[str, ...] = (),
        steps: tuple[int, ...] = (100,),
        drop_above: Annotated[float, Rule(least=0, most=1)] | None = None,
    ) -> None:
        self._kinds = Kinds(problems, by, tuple(dict.fromkeys(order)), seed=seed)
        self._order = order or self._kinds.names
        between = len(self._order) - 1
        lengths = list(steps) * between if len(steps) == 1 else list(steps)
        if len(lengths) != between or any(length < 1 for length in lengths):
            raise ConfigurationError(
                f"`steps` must have one positive number of rollouts, or one for each of the {between} stages before "
                f"the last stage; got {list(steps)}."
            )
        self._ends = [sum(lengths[: at + 1]) for at in range(between)]
        self._most, self._rates, self._steps = drop_above, Rates(), 0

    @property
    def stage(self) -> int:
        """Number of the stage, from 0."""
        return sum(self._steps >= end for end in self._ends)

    @property
    def kind(self) -> str:
        """The kind of problem in the current stage."""
        return self._order[self.stage]

    def draw(self, n: int) -> list[Start]:
        """Draw the ``reset`` arguments of the next ``n`` groups, and advance the state; see ``Sampler``."""
        return [self._next() for _ in range(n)]

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Count the rollout, and record pass rates if ``drop_above`` is set."""
        if self._most is not None:
            for outcome in outcomes:
                self._rates.add(outcome.start.problem_id, outcome.successes, outcome.episodes)
        self._steps += 1

    def figures(self) -> dict[str, float]:
        """Return numbers about the next draws, by name, for the log; see ``ReportsFigures``."""
        shares = {f"share/{name}": float(name == self.kind) for name in self._kinds.names}
        return {"stage": self.stage + 1.0, **shares}

    def _next(self) -> Start:
        start = self._kinds.draw(self.kind)
        for _ in range(_REDRAWS):
            rate = self._rates.of(start.problem_id)
            if self._most is None or rate is None or rate <= self._most:
                break
            start = self._kinds.draw(self.kind)
        return start


SAMPLERS.register("stages", Stages)

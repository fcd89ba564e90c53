"""``generated_worlds``: generates configurations of worlds for the policy's weak skills (EnvGen, arXiv 2403.12014).

In each of four cycles, the paper's language model writes four configurations of a game. The agent trains in them and
then in the original game. The success rate of each skill in the original game is the feedback from which the model
writes the next configurations. Here, skills are worlds of problems with options (procedural families), a configuration
is a value for each option to vary, and a rule or a model chooses the values.
"""

# This module is longer than most parts because it has two phases, reports figures and has a state for checkpoints.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from rstar2_env.core.options.declare import Count, Rule, Seed, checked
from rstar2_env.core.options.parts import PartSpec
from rstar2_env.core.saved_attributes import SavedAttributes
from rstar2_env.problems import ProblemSource

from .base import SAMPLERS, GroupResult, Start
from .configurations import Configuration, ConfigurationSpace, ModelDesigner, RuleDesigner, Tried

_GENERATED, _ORIGINAL = "generated/", "original/"


class GeneratedWorlds(SavedAttributes):
    """Draws in turn from generated configurations of worlds and from the original worlds (EnvGen, arXiv 2403.12014).

    A world is a procedural family of problems; a configuration sets the options in ``vary`` of one world. A cycle plays
    ``every`` rollouts in ``count`` configurations, drawn with equal chances, and then ``original`` rollouts in the
    original worlds. The success rates in the configurations and in the worlds determine the next configurations. After
    the last cycle, only the original worlds are drawn from. The environment must accept problems of the worlds.
    Example: ``env=rstar2/Countdown-v0`` with ``sampler.vary={"numbers": [2, 3, 4], "largest": [10, 50]}``.

    Rule: a world gets a number of configurations in proportion to its failure rate. If a world had no configurations in
    the last cycle, the new ones are spread evenly from the easiest to the hardest values. Otherwise, each new
    configuration is a configuration of the last cycle with one option changed: to the next harder value if the old
    configuration's success rate was above ``high``, or to the next easier value if it was below ``low``.

    Model: the prompt lists the worlds and the configurations of the last cycle, each with its success rate, and the
    values of each option; the model replies with configurations. If the reply has too few configurations, the rule
    adds the missing ones. A run of several processes refuses a model: each process would query it, and get a different
    reply.

    Args:
        seed: Seed of all draws.
        problems: The environment's source of problems.
        vary: Values of each option to vary, easiest first.
        worlds: The worlds, each a procedural family with options (``countdown:numbers=4``); by default the
            environment's source, or the parts of its mixture.
        designer: A judge, as for ``rollout.judge``, that is asked for configurations (``model:url=...,model=...``);
            allowed only in a run of one process. ``None`` uses the rule.
        count: Number of configurations in a cycle; the paper uses 4.
        every: Rollouts in generated configurations, per cycle.
        original: Rollouts in the original worlds, per cycle; the paper trains as long in the original as in the
            configurations.
        cycles: Number of cycles; the paper uses 4.
        low: Success rate below which a configuration becomes easier.
        high: Success rate above which a configuration becomes harder.

    Raises:
        ConfigurationError: A world is not a procedural family, a world lacks an option in ``vary`` or does not accept a
            combination of its values, or ``low`` is above ``high``.
    """

    saved = ("_drawn", "_steps", "_configurations", "_seen", "_skills")

    @checked
    def __init__(
        self,
        seed: Seed = 0,
        problems: ProblemSource | None = None,
        *,
        vary: Mapping[str, Sequence[Any]],
        worlds: tuple[str, ...] = (),
        designer: PartSpec | None = None,
        count: Count = 4,
        every: Count = 25,
        original: Count = 25,
        cycles: Count = 4,
        low: Annotated[float, Rule(least=0, most=1)] = 0.25,
        high: Annotated[float, Rule(least=0, most=1)] = 0.75,
    ) -> None:
        self._space = ConfigurationSpace(worlds, vary, problems, seed=seed)
        rule = RuleDesigner(self._space, low, high)
        self._designer = rule if designer is None else ModelDesigner(self._space, rule, designer)
        self._seed, self._count, self._cycles = seed, count, cycles
        self._every, self._cycle = every, every + original
        self._drawn = self._steps = 0
        self._skills = [0.0] * len(self._space.worlds)
        self._seen: dict[str, list[int]] = {}
        self._configurations: list[Configuration] = []  # a resumed run has them in its state

    @property
    def configurations(self) -> list[str]:
        """Names of this cycle's configurations."""
        return [self._space.name(one) for one in self._designed()]

    @property
    def one_process(self) -> bool:
        """Whether only a run of one process can use the sampler; see ``Sampler``."""
        return isinstance(self._designer, ModelDesigner)

    def _designed(self) -> list[Configuration]:
        """Return the configurations of this cycle; the first call designs the first cycle's configurations."""
        if not self._configurations:
            self._configurations = self._designer.design(self._count, [], self._skills, self._rng(0))
        return self._configurations

    @property
    def _generated(self) -> bool:
        """Whether the next starts are drawn from the generated configurations, and not from the original worlds."""
        return self._steps < self._cycle * self._cycles and self._steps % self._cycle < self._every

    def draw(self, n: int) -> list[Start]:
        """Return the next ``n`` starts, and advance the state; see ``Sampler``."""
        found = [self._draw(number) for number in range(self._drawn, self._drawn + n)]
        self._drawn += n
        return found

    def _draw(self, number: int) -> Start:
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, number, 8]))
        seed = int(rng.integers(2**63))
        if self._generated:
            configurations = self._designed()
            source = self._space.source(configurations[int(rng.integers(len(configurations)))])
            kind = _GENERATED + source.name
        else:
            source = self._space.worlds[int(rng.integers(len(self._space.worlds)))]
            kind = _ORIGINAL + source.name
        return Start(seed, {"problem": self._space.sample(source, rng)}, kind)

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Count successes; the end of a cycle determines the configurations of the next one."""
        for outcome in outcomes:
            seen = self._seen.setdefault(outcome.start.kind, [0, 0])
            seen[0], seen[1] = seen[0] + outcome.successes, seen[1] + outcome.episodes
        self._steps += 1
        if self._steps % self._cycle == 0 and self._steps < self._cycle * self._cycles:
            rates = {kind: right / played for kind, (right, played) in self._seen.items() if played}
            named = zip(self._space.worlds, self._skills, strict=True)
            self._skills = [rates.get(_ORIGINAL + world.name, before) for world, before in named]
            tried = [Tried(one, rates.get(_GENERATED + self._space.name(one))) for one in self._designed()]
            rng = self._rng(self._steps // self._cycle)
            self._configurations = self._designer.design(self._count, tried, self._skills, rng)
            self._seen = {}

    def _rng(self, cycle: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence([self._seed, cycle, 9]))

    def figures(self) -> dict[str, float]:
        """Return numbers about the next draws, by name, for the log; see ``ReportsFigures``."""
        names = self.configurations if self._generated else [world.name for world in self._space.worlds]
        shares = {f"share/{name}": names.count(name) / len(names) for name in names}
        return {"stage": float(min(self._steps // self._cycle + 1, self._cycles)), **shares}


SAMPLERS.register("generated_worlds", GeneratedWorlds)

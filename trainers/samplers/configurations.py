"""Configurations of worlds for ``generated_worlds``, and the two designers that choose them: a rule, and a model.

A configuration is a list of indices. The first index selects a world (a procedural family with options). Each further
index selects the value of one option to vary, from a list of possible values that starts with the easiest.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from rstar2_env.core.errors import ConfigurationError, ServiceError, UnusableReplyError
from rstar2_env.core.options.declare import parse_options
from rstar2_env.core.options.parts import PartSpec
from rstar2_env.core.options.text import split_list
from rstar2_env.problems import FAMILIES, FiniteSource, MixtureSource, ProblemSource, load_problems
from rstar2_env.rewards.judges import make_reward_judge

_LOG = logging.getLogger(__name__)
Configuration: TypeAlias = list[int]
"""Index of the world, then the index of each option's value; JSON-compatible, for checkpoints."""
_REPLIED = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Tried:
    """A configuration of the last cycle.

    Attributes:
        configuration: Index of the world and of each option's value; see ``Configuration``.
        success: Success rate of the configuration, in [0, 1]; ``None`` if no episode counted.
    """

    configuration: Configuration
    success: float | None


class ConfigurationSpace:
    """The worlds and the values of their options.

    Args:
        worlds: The worlds, each a procedural family with options; if empty, the sources in ``problems``.
        vary: Values of each option to vary, easiest first.
        problems: The environment's source of problems.
        seed: Seed of the worlds' problems.

    Attributes:
        worlds: The sources of the worlds.
        vary: Values of each option to vary, by name, easiest first.

    Raises:
        ConfigurationError: A world is not a procedural family, an option has no values, or a world lacks an option or
            does not accept a combination of values.
    """

    def __init__(
        self, worlds: Sequence[str], vary: Mapping[str, Sequence[Any]], problems: ProblemSource | None, *, seed: int
    ) -> None:
        self._seed = seed
        self.vary = {name: list(values) for name, values in vary.items()}
        if not self.vary or not all(self.vary.values()):
            raise ConfigurationError(
                "The sampler 'generated_worlds' needs at least one option to vary, with its values, easiest first: "
                'sampler.vary={"numbers": [2, 3, 4]}.',
                option="vary",
            )
        parts = problems.parts if isinstance(problems, MixtureSource) else [] if problems is None else [problems]
        self._specs = list(worlds or [part.name for part in parts])
        if not self._specs:
            raise ConfigurationError("The environment has no source of problems: set sampler.worlds.", option="worlds")
        self.worlds = [self._load(spec, {}) for spec in self._specs]
        self._sources: dict[tuple[int, ...], ProblemSource] = {}
        for world in range(len(self.worlds)):
            for chosen in product(*(range(len(values)) for values in self.vary.values())):
                self._check([world, *chosen])

    def _load(self, spec: str, values: Mapping[str, Any]) -> ProblemSource:
        family, _, rest = spec.partition(":")
        if family not in FAMILIES:
            raise ConfigurationError(
                f"{spec!r} is not a procedural family with options, so no configuration of it can be generated. Set "
                "sampler.worlds to families such as countdown:numbers=4 (`rstar2 list problems`), or use another "
                "sampler, such as skill_gap, which draws from the problems of the environment.",
                option="worlds",
            )
        found = load_problems(family, **{"seed": self._seed, **parse_options(split_list(rest)), **values})
        if isinstance(found, FiniteSource):
            raise ConfigurationError(
                f"{spec!r} has a fixed number of problems; choose a family that generates problems without end, such "
                "as countdown:numbers=4."
            )
        return found

    def source(self, configuration: Configuration) -> ProblemSource:
        """Return the source of a configuration's problems.

        Raises:
            ConfigurationError: The world does not have an option, or refuses a value.
        """
        key = tuple(configuration)
        if key not in self._sources:
            self._sources[key] = self._load(self._specs[configuration[0]], self.values(configuration))
        return self._sources[key]

    def _check(self, configuration: Configuration) -> None:
        try:
            self.source(configuration)
        except ConfigurationError as error:
            values = ", ".join(f"{name}={value!r}" for name, value in self.values(configuration).items())
            raise ConfigurationError(
                f"The world {self._specs[configuration[0]]} does not accept the values {values}: {error} A run may use "
                "every combination of values in sampler.vary: remove the values that do not fit together.",
                option="vary",
            ) from error

    def name(self, configuration: Configuration) -> str:
        """Return the name of the source of a configuration's problems."""
        return self.source(configuration).name

    def values(self, configuration: Configuration) -> dict[str, Any]:
        """Return the value that a configuration gives each option, by name."""
        chosen = zip(self.vary.items(), configuration[1:], strict=True)
        return {name: values[number] for (name, values), number in chosen}

    def sample(self, source: ProblemSource, rng: np.random.Generator) -> dict[str, Any]:
        """Sample a new problem of a source; return it as the value of the option ``problem`` of ``reset``."""
        fields = asdict(source.sample(rng))
        return {**fields.pop("meta"), **fields}

    def read(self, written: Any) -> Configuration:
        """Return the configuration that ``{"world": ..., "options": {...}}`` describes.

        An option that is missing has its easiest value.

        Raises:
            ConfigurationError: The world, an option or a value is not in ``worlds`` or ``vary``.
        """
        found: dict[str, Any] = written if isinstance(written, dict) else {}
        world: Any = found.get("world")
        options: Any = found.get("options")
        known = isinstance(options, dict) and set(options) <= set(self.vary) and world in self._specs
        if not known or any(value not in self.vary[name] for name, value in options.items()):
            raise ConfigurationError(
                f"expected a world among {', '.join(self._specs)} and options with values among {self.vary}, got "
                f"{json.dumps(written):.200}"
            )
        chosen = [values.index(options.get(name, values[0])) for name, values in self.vary.items()]
        return [self._specs.index(world), *chosen]

    def described(self, configuration: Configuration) -> str:
        """Return a configuration in the form that ``read`` reads."""
        return json.dumps({"world": self._specs[configuration[0]], "options": self.values(configuration)})


@dataclass(frozen=True, slots=True)
class RuleDesigner:
    """Chooses configurations by a rule; see ``GeneratedWorlds``.

    Args:
        space: The worlds and their options.
        low: Success rate below which a configuration becomes easier.
        high: Success rate above which a configuration becomes harder.

    Raises:
        ConfigurationError: ``low`` is above ``high``.
    """

    space: ConfigurationSpace
    low: float
    high: float

    def __post_init__(self) -> None:
        """Check the bounds."""
        if self.low > self.high:
            raise ConfigurationError(f"low={self.low:g} must not be above high={self.high:g}.", option="low")

    def design(
        self, count: int, tried: Sequence[Tried], skills: Sequence[float], rng: np.random.Generator
    ) -> list[Configuration]:
        """Return the next configurations.

        Args:
            count: Number of configurations to return.
            tried: The configurations of the last cycle; empty before the first cycle.
            skills: Success rate of each world.
            rng: Chooses which option changes.
        """
        found: list[Configuration] = []
        for world, number in enumerate(_shared(count, [1 - success for success in skills])):
            own = [one for one in tried if one.configuration[0] == world]
            for at in range(number):
                found.append(self._moved(own[at % len(own)], rng) if own else self._spread(world, at, number))
        return found

    def _spread(self, world: int, at: int, number: int) -> Configuration:
        share = at / max(1, number - 1)
        return [world, *(round(share * (len(values) - 1)) for values in self.space.vary.values())]

    def _moved(self, one: Tried, rng: np.random.Generator) -> Configuration:
        world, *chosen = one.configuration
        step = 0 if one.success is None else (one.success > self.high) - (one.success < self.low)
        sizes = [len(values) for values in self.space.vary.values()]
        movable = [at for at, size in enumerate(sizes) if 0 <= chosen[at] + step < size]
        if step and movable:
            chosen[movable[int(rng.integers(len(movable)))]] += step
        return [world, *chosen]


class ModelDesigner:
    """Asks a model for configurations; ``rule`` adds the configurations that the reply lacks.

    Args:
        space: The worlds and their options.
        rule: Designs the configurations that the reply lacks.
        judge: The model, as for ``rollout.judge``.

    Raises:
        UnknownNameError: There is no judge with this name.
    """

    def __init__(self, space: ConfigurationSpace, rule: RuleDesigner, judge: PartSpec) -> None:
        self._space, self._rule, self._written = space, rule, judge
        make_reward_judge(judge)  # errors are raised before the run

    def design(
        self, count: int, tried: Sequence[Tried], skills: Sequence[float], rng: np.random.Generator
    ) -> list[Configuration]:
        """Return the next configurations; see ``RuleDesigner.design``."""
        by_rule = self._rule.design(count, tried, skills, rng)
        found: list[Configuration] = []
        try:
            reply = self._ask(self.question(count, tried, skills))
        except (ServiceError, UnusableReplyError) as error:
            _LOG.warning(
                "The model that designs worlds did not answer, so the sampler chooses the environments of this cycle "
                "without the model: %s",
                error,
            )
            return by_rule
        for number, block in enumerate(_REPLIED.findall(reply)[:count], 1):
            try:
                found.append(self._space.read(json.loads(block)))
            except (ValueError, RecursionError) as error:  # json.loads raises both; ``read`` raises a ValueError
                _LOG.warning(
                    "Environment %d in the reply of the model that designs worlds is left out: %s", number, error
                )
        if len(found) < count:
            _LOG.warning(
                "The reply of the model that designs worlds lacks %d of the %d environments of this cycle, so the "
                "sampler chooses them without the model.",
                count - len(found),
                count,
            )
        return [*found, *by_rule[len(found) :]]

    def question(self, count: int, tried: Sequence[Tried], skills: Sequence[float]) -> str:
        """Return the prompt: the worlds and the last configurations with success rates, and the options' values."""
        space = self._space
        rates = [f"- {spec}: {rate:.0%}" for spec, rate in zip(space._specs, skills, strict=True)]
        known = rates if tried else ["- nothing was measured yet"]
        before = [
            f"Environment {number}:\n```json\n{space.described(one.configuration)}\n```\nSuccess: "
            + ("not measured" if one.success is None else f"{one.success:.0%}")
            for number, one in enumerate(tried, 1)
        ]
        options = [f"- {name}: {' | '.join(map(json.dumps, values))}" for name, values in space.vary.items()]
        return "\n".join(
            [
                f"You design environments in which a language model learns. Design {count} environments. They must not "
                "be too easy, and must put the learner in situations from which it can learn what it cannot do yet.",
                "\nSuccess of the learner in the original worlds:",
                *known,
                *(["\nEnvironments in which it has learned since your last design:", *before] if before else []),
                "\nOptions of an environment, with their values from easy to hard:",
                *options,
                f'\nReply with {count} blocks of this form, "world" being one of the worlds above, each with a short '
                "explanation:",
                f"Environment 1:\n```json\n{space.described([0] * (1 + len(space.vary)))}\n```",
                "" if tried else f"The worlds are: {', '.join(space._specs)}.",
            ]
        ).strip()

    def _ask(self, prompt: str) -> str:
        import asyncio  # not when parts are listed

        judge: Any = make_reward_judge(self._written)
        with ThreadPoolExecutor(1) as thread:  # the caller may be in an event loop
            return str(thread.submit(asyncio.run, judge(prompt)).result())


def _shared(count: int, weights: Sequence[float]) -> list[int]:
    """Divide a count in proportion to weights, by largest remainders; equally if all weights are 0."""
    total = sum(weights)
    exact = [count * (weight / total if total else 1 / len(weights)) for weight in weights]
    found = [int(one) for one in exact]
    order = sorted(range(len(exact)), key=lambda at: (found[at] - exact[at], at))
    for at in order[: count - sum(found)]:
        found[at] += 1
    return found

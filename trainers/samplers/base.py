"""What a sampler is: a cursor that hands out the starts of groups, and may learn from how they went.

A sampler's state is part of a checkpoint, so that a resumed run draws what the unbroken one would have drawn. Every
process has a sampler of its own; all of them make the same draws and observe the same outcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from rstar2_env.core.options.own_code import Shape, is_class_with
from rstar2_env.core.options.registry import Registry
from rstar2_env.problems import ProblemSource


@dataclass(frozen=True, slots=True)
class Start:
    """The arguments of the ``reset`` with which every episode of a group starts.

    Attributes:
        seed: Its seed.
        options: Its options.
        kind: The kind of problem that the sampler chose, where it draws by kinds; nothing else reads it.
    """

    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""

    @property
    def problem_id(self) -> str:
        """Id of the problem; empty where the environment chooses it by the seed."""
        return str(self.options.get("problem_id", ""))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one group went. Episodes that ended as ``unavailable`` or ``cancelled`` are in none of its numbers.

    Attributes:
        start: Where the group started.
        group: Number of the group in its step, over all processes.
        episodes: Episodes that count; where it is 0, the rest says nothing.
        successes: Correct ones among them.
        reward: Mean reward.
        advantage: Mean absolute advantage over the episodes that count; 0 for those that do not train.
        kept: Episodes that train.
        task: Kind of problem, as the episodes name it.
        deviation: Standard deviation of the rewards, over n - 1; 0 for fewer than two.
        lengths: Tokens that the policy wrote in each episode that counts.
        problem_id: The problem, as the environment names it; also where the seed chose it.
    """

    start: Start
    group: int
    episodes: int
    successes: int
    reward: float
    advantage: float
    kept: int
    task: str = ""
    deviation: float = 0.0
    lengths: tuple[int, ...] = ()
    problem_id: str = ""


class Sampler(Protocol):
    """Chooses the starts of groups. The order of its draws depends on its seed, its state and nothing else."""

    def draw(self, n: int) -> list[Start]:
        """Return the next ``n`` starts and move on."""
        ...

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Learn how the groups of a step went: those of all processes, in the order of ``Outcome.group``."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return the state as JSON can hold it."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that ``state_dict`` returned."""
        ...


@runtime_checkable
class Tells(Protocol):
    """Optional method of a sampler that can tell where it stands."""

    def figures(self) -> Mapping[str, float]:
        """Return finite numbers by name, of the step to come; they are logged as ``sampler/<name>``.

        Names in use: ``share/<kind>``, how likely each kind of problem is; ``level`` and ``stage``, numbers from 1
        (``stage`` is 0 while problems are measured); ``problems``, how many may come; ``hard``, ``normal``, ``easy``
        and ``unseen``, how many are in each pool; ``expected``, the mean pass rate that it predicts.
        """
        ...


def told_by(sampler: Sampler) -> dict[str, float]:
    """The figures of a sampler by their names in the metrics; none where it tells none."""
    told = sampler.figures() if isinstance(sampler, Tells) else {}
    return {f"sampler/{name}": float(value) for name, value in told.items()}


def problems_of(env: Any) -> ProblemSource | None:
    """The source of problems of an environment, whatever wraps it; ``None`` where it has none."""
    source = getattr(env.unwrapped, "problems", None)
    return source if isinstance(source, ProblemSource) else None


SamplerFactory = Callable[..., Sampler]
"""Makes a sampler: called with those of these that it takes, and its options.

``ids``, the problems of a finite source, else ``None``; ``seed``; ``problems``, the environment's source of problems,
or ``None`` where it has none, of which ``kinds`` and ``listed`` make what most samplers need.
"""

SAMPLERS: Registry[SamplerFactory] = Registry(
    "sampler",
    "rstar2_env.trainers.samplers",
    "rstar2_env.samplers",
    shape=Shape(is_class_with("draw", "state_dict"), "a class with draw, observe, state_dict and load_state_dict"),
)

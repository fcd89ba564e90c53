"""The protocol of samplers, which choose the starts of groups and may adapt to their results.

A sampler's state is part of a checkpoint, so a resumed run makes the same draws as an uninterrupted one. Every process
has its own sampler; all of them make the same draws and observe the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.user_code import Shape, is_class_with
from rstar2_env.problems import ProblemSource


@dataclass(frozen=True, slots=True)
class Start:
    """The arguments of the ``reset`` with which every episode of a group starts.

    Attributes:
        seed: Seed of the reset.
        options: Options of the reset.
        kind: The kind of problem, if the sampler draws by kinds; only the sampler reads it.
    """

    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""

    @property
    def problem_id(self) -> str:
        """Id of the problem; empty if the environment chooses it by the seed."""
        return str(self.options.get("problem_id", ""))


@dataclass(frozen=True, slots=True)
class GroupResult:
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
    """Chooses the starts of groups. The order of its draws depends only on its seed and its state."""

    def draw(self, n: int) -> list[Start]:
        """Return the next ``n`` starts and move on."""
        ...

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Learn how the groups of a step went: those of all processes, in the order of ``GroupResult.group``."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return the state as JSON can hold it."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that ``state_dict`` returned."""
        ...


@runtime_checkable
class Tells(Protocol):
    """Optional method of a sampler that reports its state."""

    def figures(self) -> Mapping[str, float]:
        """Return finite numbers by name for the next step; they are logged as ``sampler/<name>``.

        Names in use: ``share/<kind>``, the probability of each kind of problem; ``level`` and ``stage``, numbers from 1
        (``stage`` is 0 while problems are measured); ``problems``, the number of problems that can be drawn; ``hard``,
        ``normal``, ``easy`` and ``unseen``, the sizes of the pools; ``expected``, the predicted mean pass rate.
        """
        ...


def told_by(sampler: Sampler) -> dict[str, float]:
    """The figures of a sampler by their names in the metrics; none where it tells none."""
    told = sampler.figures() if isinstance(sampler, Tells) else {}
    return {f"sampler/{name}": float(value) for name, value in told.items()}


def problems_of(env: Any) -> ProblemSource | None:
    """Return the source of problems of an environment, inside any wrappers; ``None`` if it has none."""
    source = getattr(env.unwrapped, "problems", None)
    return source if isinstance(source, ProblemSource) else None


SamplerFactory = Callable[..., Sampler]
"""Creates a sampler: called with its options and with those of the following arguments that it declares.

``ids``, the problems of a finite source, else ``None``; ``seed``; ``problems``, the environment's source of problems,
or ``None``. ``kinds`` and ``listed`` build on ``problems`` what most samplers need.
"""

SAMPLERS: Registry[SamplerFactory] = Registry(
    "sampler",
    "rstar2_env.trainers.samplers",
    "rstar2_env.samplers",
    shape=Shape(is_class_with("draw", "state_dict"), "a class with draw, observe, state_dict and load_state_dict"),
)

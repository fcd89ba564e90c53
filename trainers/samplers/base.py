"""The protocol of samplers, which choose the starts of groups and may adapt to their results.

Samplers count rollouts: ``draw`` and ``observe`` are called for each rollout, and one rollout is trained on for up to
``optim.updates_per_rollout * optim.minibatches`` optimizer steps. Hooks and ``run.steps`` count optimizer steps.

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
    """Arguments of ``reset`` for all episodes of a group.

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
    """The results of one group.

    Episodes that ended as ``unavailable`` or ``cancelled`` do not count. Episodes that are ``off_policy`` count only if
    all available episodes of the group are ``off_policy``. All numbers cover the counted episodes.

    Attributes:
        start: Start of the group.
        group: Number of the group in its rollout, over all processes.
        episodes: Number of counted episodes; if it is 0, the other numbers have no meaning.
        successes: Number of correct counted episodes.
        reward: Mean reward.
        advantage: Mean absolute advantage; the advantage of an episode that was not selected is 0.
        kept: Number of selected episodes.
        task: Kind of problem, from ``Episode.task``.
        deviation: Standard deviation of the rewards (n - 1); 0 for fewer than two episodes.
        lengths: Number of policy tokens in each counted episode.
        problem_id: Id of the problem as the environment reports it, also if the environment chose it by the seed.
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
    """Chooses the starts of groups. Its draws depend only on its seed and its state.

    A sampler whose draws would differ between processes, such as one that asks a model, sets ``one_process = True``; a
    run of several processes then refuses it.
    """

    def draw(self, n: int) -> list[Start]:
        """Draw the ``reset`` arguments of the next ``n`` groups, and advance the state."""
        ...

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Receive the results of a rollout's groups from all processes, in the order of ``GroupResult.group``."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return the state as JSON-compatible values."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that ``state_dict`` returned."""
        ...


@runtime_checkable
class ReportsFigures(Protocol):
    """Protocol of a sampler that reports metrics of its state."""

    def figures(self) -> Mapping[str, float]:
        """Return finite numbers about the next draws, by name; they are logged as ``sampler/<name>``.

        Names in use:

        - ``share/<kind>``: probability of each kind of problem;
        - ``level`` and ``stage``: number of the level or stage, from 1; ``stage`` is 0 while pass rates are measured;
        - ``problems``: number of problems that can be drawn;
        - ``hard``, ``normal``, ``easy``, ``unseen``: sizes of the pools;
        - ``expected``: predicted mean pass rate.
        """
        ...


def figures_of(sampler: Sampler) -> dict[str, float]:
    """Return the numbers that a sampler reports, by their names in the metrics; empty without a method ``figures``."""
    figures = sampler.figures() if isinstance(sampler, ReportsFigures) else {}
    return {f"sampler/{name}": float(value) for name, value in figures.items()}


def problems_of(env: Any) -> ProblemSource | None:
    """Return the source of problems of an environment, inside any wrappers; ``None`` if it has none."""
    source = getattr(env.unwrapped, "problems", None)
    return source if isinstance(source, ProblemSource) else None


SamplerFactory = Callable[..., Sampler]
"""Creates a sampler from its options, and from ``ids``, ``seed`` and ``problems`` if it declares these arguments.

``ids`` are the ids of the problems of a finite source, else ``None``; ``problems`` is the environment's source of
problems, or ``None``. The modules ``kinds`` and ``listed`` have helpers that draw from these problems.
"""

SAMPLERS: Registry[SamplerFactory] = Registry(
    "sampler",
    "rstar2_env.trainers.samplers",
    "rstar2_env.samplers",
    shape=Shape(is_class_with("draw", "state_dict"), "a class with draw, observe, state_dict and load_state_dict"),
)

"""Compare published step times with the times that a plan computes for the same runs."""

from __future__ import annotations

from dataclasses import dataclass

from .architecture import MODELS
from .assumptions import Assumptions
from .device import DEVICES
from .placement import placements
from .plan import Plan, make_plan
from .training_time import training_time
from .workload import Workload


@dataclass(frozen=True, slots=True)
class Published:
    """A published time of a step, and the time that a plan computes for it.

    Attributes:
        what: Description of the measured activity.
        source: The publication.
        seconds: The published seconds.
        planned: The planned seconds.
        fitted: Whether an assumption was fitted to the published time, so that this time does not confirm the plan.
    """

    what: str
    source: str
    seconds: float
    planned: float
    fitted: bool = False

    @property
    def ratio(self) -> float:
        """Ratio of planned to published seconds."""
        return self.planned / self.seconds


MILES = "LMSYS blog, 2026-03-17: miles, Qwen3-30B-A3B on 8 MI300X, 32 x 8 episodes of at most 8K tokens"
RSTAR2 = "arXiv 2508.20722: 510 steps in one week on 64 MI300X, Qwen3-14B, 512 x 32 episodes"
STAGES = ((300, 2500, 8192), (85, 5000, 12_288), (125, 7000, 12_288))
"""For each stage of rStar2-Agent: number of steps, mean tokens and token budget of an episode. The means are the
midpoints of the ranges 1K to 4K, 4K to 6K and 6K to 8K (section 5.1)."""
MILES_TOKENS = 5800
"""Mean number of tokens of an episode in the published run of miles (RL framework). The number follows from the rollout
of 256 episodes, 152.8 s at 1.1 to 1.3 thousand tokens per second on each of 8 devices, and also from the training,
95.3 s at 15 to 16 thousand tokens per second."""


PRIME = "prime-rl, benchmarks/baselines of 2026-01-15: full weights, recomputation, two passes"
PRIME_FIGURES = (
    ("qwen3-4b", 8, 16_384, 26_025.5),
    ("qwen3-4b", 8, 65_536, 28_965.7),
    ("qwen3-0.6b", 1, 16_384, 11_900.0),
    ("qwen3-0.6b", 1, 65_536, 10_150.0),
)
"""Published measurements of prime-rl: model, number of devices, tokens of a row, and tokens per second."""


def comparisons() -> list[Published]:
    """Return published times and speeds of runs, each with the value that a plan computes for the same run."""
    miles = miles_plan()
    assert miles.time is not None  # the speed of its device is known, and the run fits
    time = miles.time
    return [
        Published("the rollout", MILES, 152.8, time.rollout),
        Published("training", MILES, 95.3, time.train, fitted=True),
        Published("new weights", MILES, 33.9, time.handover, fitted=True),
        Published("a step; 106 s of it are other work", MILES, 388.5, time.total),
        Published("a step, evaluations and stops included", RSTAR2, 7 * 86_400 / 510, rstar2_seconds()),
        *(
            Published(
                f"training on rows of {row:,} tokens, {name} on {count} H100", PRIME, published, planned, fitted=True
            )
            for name, count, row, tokens in PRIME_FIGURES
            for published, planned in [(2 * row * count / tokens, prime_seconds(name, count, row))]
        ),
    ]


def prime_seconds(name: str, count: int, row: int) -> float:
    """Return the planned seconds of prime-rl's benchmark step, in which each of ``count`` H100 GPUs trains on two rows.

    Args:
        name: Name of the model in ``MODELS``.
        count: Number of devices.
        row: Tokens of a row; each row is computed in a separate forward and backward pass.
    """
    work = Workload(groups=2 * count, played=1, trained=1, budget=row, tokens_per_device=row, in_flight=1)
    assume = Assumptions(mean_tokens=row, prompt_tokens=1, spread=1e-6)
    model, device = MODELS[name], DEVICES["h100"]
    placed = next(placements(model, device, count, work, assume, serve=0))
    return training_time(model, device, placed, work, assume).total


def miles_plan() -> Plan:
    """Return a plan for the published run of miles (Qwen3-30B-A3B on 8 MI300X); miles does not gather weights."""
    work = Workload(groups=32, played=8, trained=8, budget=8192, tokens_per_device=16_384, in_flight=512)
    assume = Assumptions(mean_tokens=MILES_TOKENS, sharding_gb_s=1e9)
    return make_plan(MODELS["qwen3-30b-a3b"], DEVICES["mi300x"], 8, work, assume, serve=0)


def rstar2_seconds() -> float:
    """Return the planned seconds of a step of rStar2-Agent, as the mean over the steps of its three stages."""
    spent = 0.0
    for steps, mean, budget in STAGES:
        work = Workload(groups=512, played=32, trained=16, budget=budget, tokens_per_device=16_384, in_flight=512)
        assume = Assumptions(mean_tokens=mean)
        plan = make_plan(MODELS["qwen3-14b"], DEVICES["mi300x"], 64, work, assume, serve=0)
        assert plan.time is not None  # see ``comparisons``
        spent += steps * plan.time.total
    return spent / sum(steps for steps, *_ in STAGES)

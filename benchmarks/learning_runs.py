"""The runs of ``learning.py``: arms, settings, and the file of results."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from results import source


@dataclass(frozen=True)
class Arm:
    """A way of training: a recipe, and what is changed of it."""

    recipe: str
    options: Mapping[str, Any] = field(default_factory=dict)


LAST = 0.8
"""Evaluations after more than this share of the steps count: the last fifth of those at equal distances."""
ARMS: dict[str, Arm] = {
    "grpo_clip_higher": Arm("grpo_clip_higher"),
    "grpo_roc": Arm("grpo_roc"),
    "grpo_roc, rank": Arm("grpo_roc", {"selector": "roc:mode=rank"}),
    "grpo_roc_ties": Arm("grpo_roc_ties"),
    "grpo_roc_clean": Arm("grpo_roc_clean"),
    "grpo_clip_higher, call_penalty": Arm(
        "grpo_clip_higher", {"advantage": "call_penalty:malformed=-1,failed=-1,how=add"}
    ),
}
"""The arms of the comparison; every other name is a recipe, with its options in ``EARLIER``."""
SELECTION: dict[str, Arm] = {
    "grpo_clip_higher": Arm("grpo_clip_higher"),
    "grpo_roc": Arm("grpo_roc"),
    "grpo_roc, weighted": Arm("grpo_roc", {"selector": "roc:mode=weighted"}),
    "grpo_clip_higher, clean_success": Arm("grpo_clip_higher", {"reward": ["clean_success:no_call=0.5"]}),
}
"""The arms of ``learning_selection.jsonl``, which docs/atlas.md shows: Resample-on-Correct and its corrected forms."""
CURVES = (
    "grpo_clip_higher",
    "grpo_roc",
    "grpo_roc_clean",
    "grpo_roc_ties",
    "apo",
    "cispo",
    "clip_cov",
    "dapo",
    "dppo",
    "dr_grpo",
    "echo",
    "gigpo",
    "gmpo",
    "gspo",
    "kl_cov",
    "lite_ppo",
    "maxrl",
    "opo",
    "reinforce_pp",
    "rloo",
    "sapo",
    "agentmath",
    "agentrl",
    "arpo",
    "critique_grpo",
    "grpo_tcr",
    "laser",
    "open_rs",
    "opsd",
    "prorl",
    "tool_star",
)
"""Recipes of the curves: those that differ in what a token is worth, then those with rollouts, rewards or hooks too."""
_EQUAL, _EVERY = "all:reject_equal=true", "all:reject_equal=false,equal=reward"
EARLIER: dict[str, Mapping[str, Any]] = {
    "agentrl": {"reward": ["return"]},
    "apo": {"selector": _EQUAL, "minibatches": 1},
    "cispo": {"minibatches": 4},
    "clip_cov": {"selector": _EVERY, "refill": 0, "loss": ["clip_cov:low=0.2,high=0.2"], "minibatches": 4},
    "clip_delta": {"reward": ["outcome", "process:bound=both"], "selector": _EQUAL},
    "critique_grpo": {"minibatches": 1},
    "dapo": {"minibatches": 1},
    "dppo": {"aggregation": "token_mean", "minibatches": 4},
    "echo": {"loss": ["ppo_clip", "echo:coef=0.1"], "aggregation": "token_mean"},
    "gmpo": {"minibatches": 4},
    "kl_cov": {"selector": _EVERY, "refill": 0, "minibatches": 4},
    "laser": {"selector": _EQUAL, "loss": ["ppo_clip:low=0.2,high=0.28", "kl:coef=1e-3"], "minibatches": 1},
    "maxrl": {"selector": _EQUAL, "loss": ["ppo_clip:low=0.2,high=0.28"]},
    "open_rs": {
        "reward": ["cosine_length:longest=3584,weight=1", "answer_format"],
        "lr_scheduler": "constant_with_warmup",
        "warmup_steps": 0,
        "trl_options": {"lr_scheduler_kwargs": None},
    },
    "reinforce_pp": {"loss": ["ppo_clip:low=0.2,high=0.2"]},
    "tool_star": {"selector": _EQUAL, "minibatches": 1},
}
"""Recipes of the curves that have changed since these were measured, each with the options that it had then."""


def arm_of(name: str) -> Arm:
    """Return an arm by its name, or the arm of a recipe."""
    return ARMS.get(name) or SELECTION.get(name) or Arm(name, EARLIER.get(name, {}))


@dataclass(frozen=True)
class Settings:
    """Settings that all runs of a file of results share.

    Attributes:
        budget: Episodes that a run of the comparison trains on.
        curve_budget: Episodes that a run of the curves plays; what refill plays comes on top.
        problems: Held-out problems of an evaluation of the comparison, one episode each.
        curve_problems: The same, of the curves.
        evaluations: Evaluations of a run of the comparison at equal distances. Of these the last two are made, which
            are the fifth that counts; and one before the first step.
        curve_evaluations: Evaluations of a run of the curves at equal distances, all of which are made.
        source: Where problems come from.
        traces: Traces of the cold start.
        error_rate: Share of them whose first call fails and is then corrected.
        wrong_rate: Share of them that copy a wrong number into the answer.
        hidden: Width of the model.
        layers: Its layers.
        call_mistakes: How first calls fail, joined by +; names of ``rstar2_env.traces.mistakes``.
        twice: 1 where the other traces make their call twice.
        sft_steps: Optimizer steps of the cold start.
        learning_rate: Learning rate of every run without a rate of its own, which overrides the recipe's.
        env: The environment.
        token_budget: Tokens that a run of the bake-off generates in training.
        bakeoff_problems: Held-out problems of an evaluation of the bake-off.
    """

    budget: int = 2560
    curve_budget: int = 1280
    problems: int = 1024
    curve_problems: int = 256
    evaluations: int = 10
    curve_evaluations: int = 4
    source: str = "arithmetic:level=1,max_number=199"
    traces: int = 4000
    error_rate: float = 0.7
    wrong_rate: float = 0.0
    call_mistakes: str = "misspelt+division_by_zero"
    twice: int = 1
    hidden: int = 64
    layers: int = 2
    sft_steps: int = 600
    learning_rate: float = 7e-4
    env: str = "rstar2/MathTool-v0"
    token_budget: int = 45_000
    bakeoff_problems: int = 512


WORLDS: dict[str, Mapping[str, Any]] = {
    "indifferent": {},
    "teaching": {
        "call_mistakes": "undefined_name+misspelt+division_by_zero+syntax",
        "twice": 0,
        "learning_rate": 1e-3,
    },
}
"""Settings by the name of the world that they make, over the defaults: whether rewards mind failing calls."""


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        arm: Name of its arm, or of a recipe.
        seed: Its seed.
        faults: Share of calls in training that meet an injected fault.
        counts: Whether the budget is of episodes that are ``"trained"`` on or ``"played"``, or of generated
            ``"tokens"``.
        rate: Its learning rate; 0 for that of the settings.
    """

    arm: str
    seed: int
    faults: float = 0.0
    counts: str = "trained"
    rate: float = 0.0

    @property
    def folder(self) -> str:
        """Name of its folder."""
        own = f"rate{self.rate:g}-" if self.rate else ""
        return f"{self.arm.replace(', ', '-')}-{self.counts}-{own}faults{self.faults:g}-seed{self.seed}"


class Results:
    """A file of what runs with the same settings came to: a line of the settings, then a line of each finished run.

    The first line also has ``command``, ``commit`` and ``load`` (``tools/results.py``); a line of a run that was made
    with another commit or load has its own.

    Args:
        path: The file, which is created if it does not exist.
        asked: The requested settings, by name. Other settings come from the file, or are the defaults.

    Raises:
        SystemExit: The file holds runs of other settings.
    """

    def __init__(self, path: Path, asked: Mapping[str, Any]) -> None:
        self.path = path
        first = path.read_text("utf-8").partition("\n")[0] if path.exists() else ""
        told = json.loads(first) if first else {"settings": asked, **source()}
        self.settings = Settings(**told["settings"])
        self._made = {key: told[key] for key in ("commit", "load") if key in told}
        held = dataclasses.asdict(self.settings)
        if other := {name: held[name] for name, value in asked.items() if held[name] != value}:
            raise SystemExit(f"{path} holds runs of other settings ({other}); choose another --results.")
        if not first:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({**told, "settings": held}) + "\n", encoding="utf-8")

    def lines(self) -> list[dict[str, Any]]:
        """Return the result of each finished run, with its ``commit`` and ``load``; a line that was cut is skipped."""
        found = []
        for line in self.path.read_text("utf-8").splitlines()[1:]:
            try:
                found.append({**self._made, **json.loads(line)})
            except json.JSONDecodeError:
                continue
        return found

    def missing(self, runs: Sequence[Run]) -> list[Run]:
        """The runs without a line, in their order."""
        names = [one.name for one in dataclasses.fields(Run)]
        done = {Run(**{name: line[name] for name in names if name in line}) for line in self.lines()}
        return [run for run in runs if run not in done]

    def add(self, run: Run, **found: Any) -> None:
        """Write the line of a run, all at once."""
        made = {key: value for key, value in source().items() if key in ("commit", "load")}
        line = json.dumps({**dataclasses.asdict(run), **found, **made}) + "\n"
        with open(self.path, "ab") as file:
            if not self.path.read_bytes().endswith(b"\n"):
                file.write(b"\n")
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())

"""``data``: writes the training problems and the held-out problems of a pipeline as files for later stages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.problems import FiniteSource, Problem, load_problems
from rstar2_env.problems.files.write import write_jsonl

from ..base import STAGES, Output, StageMeasurements, Work
from ..cost import Cost, CostInputs
from ..plan import plain_options
from ..playing import counted

TRAIN, TEST = "train.jsonl", "test.jsonl"


@dataclass(frozen=True)
class Data(CheckedOptions):
    """Write the training problems to one file, and the held-out problems to another.

    A training problem is left out if a held-out problem has the same question.

    Attributes:
        problems: Any value that ``load_problems`` accepts: a file, a family, the name of a data set.
        held_out: Source of the held-out problems; ``None`` for the split "test" of ``problems``.
        count: Maximum number of training problems; required for an unlimited source.
        held_out_count: Maximum number of held-out problems; required for an unlimited source.
        seed: Seed of an unlimited source; ``None`` for the pipeline's seed.
    """

    problems: str
    held_out: str | None = None
    count: int | None = option(None, least=1)
    held_out_count: int | None = option(None, least=1)
    seed: int | None = option(None, least=0)

    inputs: ClassVar[Mapping[str, str]] = {"problems": "problems", "held_out": "problems"}
    outputs: ClassVar[Mapping[str, Output]] = {"train": Output("problems", TRAIN), "test": Output("problems", TEST)}

    def resolved(self) -> Mapping[str, Any]:
        """Return all options that determine the outputs, without the inputs; see ``Stage``."""
        return plain_options(self)

    def cost(self, about: CostInputs) -> Cost:
        """Estimate the cost of the stage before it runs; see ``Stage``."""
        counts = {
            "train": (self.count, counted(self.problems, "train")),
            "test": (self.held_out_count, counted(self.held_out or self.problems, "test")),
        }
        known = {name: [count for count in both if count is not None] for name, both in counts.items()}
        return Cost(count={name: min(both) for name, both in known.items() if both})

    def run(self, work: Work) -> StageMeasurements:
        """Run or resume the stage, and return its measurements; see ``Stage``."""
        held_out = self.held_out or self.problems
        test = list(_taken(held_out, "test", self.held_out_count, work.seed, "held_out_count"))
        questions = {" ".join(problem.question.split()) for problem in test}
        train = [
            problem
            for problem in _taken(self.problems, "train", self.count, work.seed, "count")
            if " ".join(problem.question.split()) not in questions
        ]
        if not train:
            raise ConfigurationError(
                f"All problems of {self.problems} are held out for evaluation, so none are left to train on: "
                "lower held_out_count."
            )
        write_jsonl(test, work.folder / TEST, overwrite=True)
        write_jsonl(train, work.folder / TRAIN, overwrite=True)
        return {"train": float(len(train)), "test": float(len(test))}


def _taken(spec: str | Path, split: str, count: int | None, seed: int, option: str) -> Iterable[Problem]:
    source = load_problems(spec, split=split, **({"seed": seed} if _is_family(spec) else {}))
    if count is None and not isinstance(source, FiniteSource):
        raise ConfigurationError(
            f"The source {spec} generates problems without end: set {option} to the number of problems to write.",
            option=option,
        )
    return islice(iter(source), count)


def _is_family(spec: str | Path) -> bool:
    from rstar2_env.problems import FAMILIES

    return isinstance(spec, str) and spec.partition(":")[0] in FAMILIES


STAGES.register("data", Data)

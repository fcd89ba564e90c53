"""``Played``: the options that stages share which let a model play problems, and the playing itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rstar2_env.core.options import CheckedOptions, option
from rstar2_env.core.run_folder import layout
from rstar2_env.evaluation.policy_crew import policy_options
from rstar2_env.evaluation.result import EvalResult
from rstar2_env.evaluation.run import evaluate
from rstar2_env.problems import NAMED_SETS

from ..base import needs_training_stack
from .base import Work
from .cost import About, Cost, engines_of
from .plan import plain_options


@dataclass(frozen=True, kw_only=True)
class Played(CheckedOptions):
    """A model that plays problems, several times each.

    Attributes:
        model: The model.
        problems: The problems; ``None`` are the environment's own.
        n: Episodes of each problem.
        episodes: How many of the problems, chosen at random; ``None`` plays all.
        env: The environment.
        env_options: Its options.
        engine: What the model generates with.
        engine_options: Its options.
        model_options: How the model samples and what an episode may use, as ``rstar2 eval`` takes it.
        seed: Seed of the choice of problems and of every episode; ``None`` is the pipeline's.
    """

    model: str
    problems: str | None = None
    n: int = option(1, least=1)
    episodes: int | None = option(None, least=1)
    env: str = "rstar2/MathTool-v0"
    env_options: dict[str, Any] = field(default_factory=dict)
    engine: str = "transformers"
    engine_options: dict[str, Any] = field(default_factory=dict)
    model_options: dict[str, Any] = field(default_factory=dict)
    seed: int | None = option(None, least=0)

    split: ClassVar[str] = "test"
    """Which split is played, where the problems have splits."""

    def resolved(self) -> Mapping[str, Any]:
        """See ``Stage``."""
        found = {**plain_options(self), "model_options": policy_options(self.model_options).sampled()}
        found.pop("seed")
        return found

    def cost(self, about: About) -> Cost:
        """See ``Stage``."""
        problems = self.episodes or about.counts.get("problems") or counted(self.problems, self.split)
        policy = policy_options(self.model_options)
        episodes = None if problems is None else problems * self.n
        devices, width = engines_of(self.engine, self.engine_options)
        return Cost.of_playing(
            policy.max_episode_tokens,
            episodes,
            about,
            engines=devices // width,
            tensor_parallel=width,
            in_flight=policy.max_in_flight,
        )

    def play(self, work: Work, **more: Any) -> EvalResult:
        """Play all episodes, or those that an earlier run did not, into the stage's folder.

        Args:
            work: What the stage was given.
            **more: Further arguments of ``evaluate``.

        Raises:
            KeyboardInterrupt: It was interrupted; what was played is kept.
        """
        resumed = work.resumed and (work.folder / layout.RUN_FILE).exists()
        with needs_training_stack("A model that plays"):
            result = evaluate(
                self.env,
                model=self.model,
                engine=self.engine,
                engine_options=self.engine_options,
                model_options=self.model_options,
                problems=self.problems,
                split=self.split,
                episodes=self.episodes,
                n=self.n,
                seed=work.seed,
                env_options=self.env_options,
                out=work.folder,
                resume=resumed,
                overwrite=not resumed,
                progress=lambda episode, done, total: work.report(done, total),
                **more,
            )
        if result.interrupted:
            raise KeyboardInterrupt
        return result


def counted(problems: str | None, split: str) -> int | None:
    """How many problems a split of a public data set has, where that is known."""
    found = NAMED_SETS.get(problems or "")
    return None if found is None else found.problems.get(split)

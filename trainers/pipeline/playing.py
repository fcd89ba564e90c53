"""``PlayingStage``: base class of the stages ``evaluate`` and ``filter``, in which a model plays problems."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from rstar2_env.core.options.declare import option
from rstar2_env.core.run_folder import layout
from rstar2_env.core.stop_request import Stop
from rstar2_env.evaluation.play.policy_crew import LoadedModel, PolicyOptions, load_policy, policy_options
from rstar2_env.evaluation.result import EvalResult
from rstar2_env.evaluation.run import evaluate
from rstar2_env.models.folder import model_folder
from rstar2_env.problems import NAMED_SETS

from ..base import needs_training_stack
from .base import Work
from .cost import SERVERS, Cost, CostInputs, servers_of
from .likelihood import EngineStage
from .serve import IN_PROCESS, Serve, check_engine, check_whole, read_serve, words_of


@dataclass(frozen=True, kw_only=True)
class PlayingStage(EngineStage):
    """A stage in which a model plays problems, several times each.

    Attributes:
        model: The model that plays.
        problems: The problems; ``None`` for the environment's own.
        n: Episodes per problem.
        episodes: Number of problems to play, chosen at random; ``None`` for all.
        env: The environment in which the problems are played.
        env_options: Options of the environment.
        engine: The engine that generates.
        engine_options: Options of the engine.
        model_options: Sampling options and budgets of an episode, as in ``rstar2 eval``; with ``serve``,
            ``max_in_flight`` applies to each server.
        serve: Devices (``0-7``) or the fields of ``Serve``: the stage starts vLLM servers on these devices and uses
            them instead of vLLM in the runner's process.
        seed: Seed of the choice of problems and of every episode; ``None`` for the pipeline's seed.
    """

    model: str
    problems: str | None = None
    n: int = option(1, least=1)
    episodes: int | None = option(None, least=1)
    env: str = "rstar2/MathTool-v0"
    env_options: dict[str, Any] = field(default_factory=dict)
    serve: Serve | str | int | None = None
    seed: int | None = option(None, least=0)

    split: ClassVar[str] = "test"
    """The split to play, if the problems have splits."""

    def resolved(self) -> Mapping[str, Any]:
        """Return all options that determine the outputs, without the inputs; see ``Stage``."""
        if self._servers is not None:
            check_engine(self.engine, self.engine_options)
        return {name: value for name, value in super().resolved().items() if name != "serve"}

    def cost(self, about: CostInputs) -> Cost:
        """Estimate the cost of the stage before it runs; see ``Stage``."""
        problems = self.episodes or about.counts.get("problems") or counted(self.problems, self.split)
        episodes, policy, servers = None if problems is None else problems * self.n, self._policy, self._servers
        engines = servers_of(self.engine_options) if self.engine == SERVERS else 1
        return Cost.of_playing(
            policy.max_episode_tokens,
            episodes,
            about,
            engines=engines if servers is None else servers.count,
            tensor_parallel=1 if servers is None else servers.tensor_parallel,
            in_flight=policy.max_in_flight,
        )

    @cached_property
    def _servers(self) -> Serve | None:
        return read_serve(self.serve)

    @property
    def _policy(self) -> PolicyOptions:
        """Return the loading and sampling options; their ``max_in_flight`` applies to all servers together."""
        policy = policy_options(self.model_options)
        return (
            policy
            if self._servers is None
            else replace(policy, max_in_flight=self._servers.count * policy.max_in_flight)
        )

    def play(self, work: Work, **more: Any) -> EvalResult:
        """Play all episodes that are not in the stage's folder yet, and record them there.

        Args:
            work: The context of the stage.
            **more: Further arguments of ``evaluate``.

        Raises:
            KeyboardInterrupt: The stage was interrupted; played episodes are kept.
            LaunchError: The servers did not start, or no server is left.
        """
        resumed, stop = work.resumed and (work.folder / layout.RUN_FILE).exists(), Stop()
        with needs_training_stack("A model that plays"), ExitStack() as opened:
            result = evaluate(
                self.env,
                model=self.model if self._servers is None else self._served(self._servers, work, stop, opened),
                engine=self.engine,
                engine_options=self.engine_options,
                model_options=self._policy,
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
                stop=stop,
                **more,
            )
            if result.interrupted:
                raise KeyboardInterrupt
        return result

    def _served(self, servers: Serve, work: Work, stop: Stop, opened: ExitStack) -> LoadedModel:
        """Start servers of the model until ``opened`` closes; request ``stop`` if no server is left.

        Returns:
            The model, which generates on these servers.
        """
        check_whole(self.model)  # check this first, because starting servers takes minutes
        model = model_folder(self.model)
        policy = policy_options(self.model_options)
        alone = self.engine == IN_PROCESS
        words = words_of(self.engine_options if alone else {}, policy, cpu=servers.cpu)
        cuts = policy.top_p < 1 or policy.top_k > 0
        found = opened.enter_context(servers.serving(model, words, work, stop.request, cuts=cuts))
        options = found if alone else {**found, **self.engine_options}
        loaded = load_policy(model, self._policy, engine=SERVERS, engine_options=options, seed=work.seed)
        opened.callback(loaded.close)
        # The record has the stage's engine instead of the servers, so that a run can be resumed with or without them.
        return replace(loaded, engine_name=self.engine)


def counted(problems: str | None, split: str) -> int | None:
    """Return the number of problems in a split of a public data set; ``None`` if unknown."""
    found = NAMED_SETS.get(problems or "")
    return None if found is None else found.problems.get(split)

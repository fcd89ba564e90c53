"""``annotate``: samples a latent action or thought before each line of an expert's solution (RA3, arXiv 2509.25810).

RA3 trains on experts' texts by expectation maximization (EM). Before each line a_t the policy draws a latent z_t:
``<act>``, to continue directly, or ``<think>`` and one line of thought. This stage draws the latents and writes two
files:

- ``problems``, for the E-step: one problem per line a_t. Its question is the state s_t: the original question, and the
  solution's lines before a_t with their thoughts. Its gold answer is a_t. The reward of a policy that plays it is
  ``latent_action``: log p(a_t | s_t, z_t) - cost * 1[z_t is a thought].
- ``traces``, for the M-step: the same states; z_t and a_t are the policy's turn, to be predicted token by token.

Without a model every latent is ``<act>``, which equals plain next-token prediction; the first round starts this way.
Measurements: ``thoughts``, the share of lines with a thought; ``nll`` and ``nll_act``, the negative mean
log-probability of a line, in nats, after its latent and after ``<act>`` respectively. Example: a solution of three
lines produces three problems, and the state of the last problem contains the first two lines. Not covered: the paper's
prior distribution of how long a latent persists; a cost per thought replaces it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.append_only import append_text, cut_broken_end, whole_lines
from rstar2_env.core.options.declare import option
from rstar2_env.problems import Problem, load_problems
from rstar2_env.problems.files.write import write_jsonl
from rstar2_env.rewards.latent_action import ACT, latent_of, log_likelihood

from ..base import STAGES, Output, StageMeasurements, Work
from ..cost import Cost, CostInputs
from ..likelihood import EngineStage, Likelihood
from ..traces import write_traces

PROBLEMS, TRACES = "problems.jsonl", "traces.jsonl"
_DRAWN = "drawn.jsonl"
"""File of the sampled latents. It is kept, so that a stage that is killed after the sampling does not sample again."""
INSTRUCTION = (
    "Before the next line of the solution, write <act> if it follows from what is there, or <think> and one line of "
    "thought on what to do next.\n\n"
)


@dataclass(frozen=True, kw_only=True)
class Annotate(EngineStage):
    """Draw a latent (a thought, or ``<act>``) before each line of an expert's solution (RA3, arXiv 2509.25810).

    Attributes:
        problems: Problems with worked solutions.
        model: The model that draws the latents; ``None`` annotates every line with ``<act>``.
        solution: The field of ``Problem.meta`` that holds the solution, whose lines are the expert's actions.
        count: Number of problems; ``None`` for all.
        instruction: The text before the question.
        temperature: Sampling temperature of the latents.
        max_thought_tokens: Maximum tokens of a latent.
        engine: The engine, which generates and scores.
        engine_options: Options of the engine.
        model_options: Options for loading the model, as in ``rstar2 eval``.
        seed: Seed of the draws; ``None`` for the pipeline's seed.
    """

    problems: str
    model: str | None = None
    solution: str = "solution"
    count: int | None = option(None, least=1)
    instruction: str = INSTRUCTION
    temperature: float = option(1.0, least=0)
    max_thought_tokens: int = option(64, least=1)
    seed: int | None = option(None, least=0)

    inputs: ClassVar[Mapping[str, str]] = {"problems": "problems", "model": "model"}
    outputs: ClassVar[Mapping[str, Output]] = {
        "problems": Output("problems", PROBLEMS),
        "traces": Output("traces", TRACES),
    }

    def cost(self, about: CostInputs) -> Cost:
        """Estimate the cost of the stage before it runs; see ``Stage``."""
        return Cost(notes=["the number of lines in the solutions is not known"])

    def run(self, work: Work) -> StageMeasurements:
        """Run or resume the stage, and return its measurements; see ``Stage``."""
        solutions = list(self._solutions())
        drawn = work.folder / _DRAWN
        if not work.resumed:
            drawn.unlink(missing_ok=True)
        cut_broken_end(drawn)
        done = {record["number"]: record["lines"] for record in map(json.loads, whole_lines(drawn))}
        with nullcontext() if self.model is None else self.likelihood(self.model) as model:

            async def one(number: int) -> None:
                problem, lines = solutions[number]
                done[number] = [line async for line in self._annotated(model, problem, lines, (work.seed, number))]
                append_text(drawn, json.dumps({"number": number, "lines": done[number]}) + "\n")

            left = [number for number in range(len(solutions)) if number not in done]
            if model is not None:
                model.each([partial(one, number) for number in left], work.report)
            else:
                asyncio.run(_in_turn(one, left))
        every = [(problem, at, line) for n, (problem, _) in enumerate(solutions) for at, line in enumerate(done[n])]
        write_traces(work.folder / TRACES, (_trace(problem, line) for problem, _, line in every))
        made = (Problem(f"{problem.id}/{at}", line["state"], line["line"]) for problem, at, line in every)
        write_jsonl(made, work.folder / PROBLEMS, overwrite=True)
        lines = [line for _, _, line in every]
        thoughts = float(np.mean([line["latent"] != ACT for line in lines]))
        nll = _NLL if self.model is not None else ()
        scores = {name: -float(np.mean([line[key] for line in lines])) for name, key in nll}
        return {"lines": float(len(lines)), "thoughts": thoughts, **scores}

    def _solutions(self) -> Iterator[tuple[Problem, list[str]]]:
        for problem in islice(iter(load_problems(self.problems)), self.count):
            lines = [one.strip() for one in str(problem.meta.get(self.solution) or "").splitlines() if one.strip()]
            if not lines:
                raise ConfigurationError(
                    f"The problem {problem.id!r} of {self.problems} does not have the field "
                    f"{self.solution!r}, which must hold a worked solution. Use problems with worked "
                    "solutions, or set `solution` to the name of the field that holds them.",
                    option="solution",
                )
            yield problem, lines

    async def _annotated(
        self, model: Likelihood | None, problem: Problem, lines: Sequence[str], seed: tuple[int, int]
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield a record for each line, in order, since a line's latent depends on the earlier lines and latents.

        The keys are ``state`` (the text before the line), ``line`` and ``latent``; with a model also ``logp`` and
        ``logp_act``, the log-probability of the line after its latent and after ``<act>`` respectively.
        """
        state = f"{self.instruction}{problem.question}"
        for at, line in enumerate(lines):
            found: dict[str, Any] = {"state": state, "line": line, "latent": ACT}
            if model is not None:
                prompt = model.chat.prompt("", state)
                text = await model.line(
                    prompt,
                    temperature=self.temperature,
                    max_tokens=self.max_thought_tokens,
                    seed=int(np.random.SeedSequence((*seed, at)).generate_state(1)[0]),
                )
                found["latent"] = latent_of(text)
                found["logp_act"] = await log_likelihood(model, prompt, ACT, line)
                found["logp"] = found["logp_act"]
                if found["latent"] != ACT:
                    found["logp"] = await log_likelihood(model, prompt, found["latent"], line)
            yield found
            state += f"\n{line}" if found["latent"] == ACT else f"\n{found['latent']}\n{line}"


_NLL = (("nll", "logp"), ("nll_act", "logp_act"))


def _trace(problem: Problem, line: Mapping[str, Any]) -> dict[str, Any]:
    turn = {"role": "assistant", "content": f"{line['latent']}\n{line['line']}"}
    return {"problem_id": problem.id, "messages": [{"role": "user", "content": line["state"]}, turn]}


async def _in_turn(one: Callable[[int], Awaitable[None]], numbers: Sequence[int]) -> None:
    for number in numbers:
        await one(number)


STAGES.register("annotate", Annotate)

"""What ``logit_transfer`` (RAST) reaches, beside plain sampling with as many tokens: three tiny models, trained here.

    python benchmarks/logit_transfer.py [--quick] [--seed 0] [--json FILE]

The problems are sums such as ``47-2+3``. A larger and a smaller model learn from the same worked solutions, of which a
share (``wrong``) adds first and so comes to a wrong answer. GRPO then trains the smaller one; the larger is never
trained again. On held-out problems, sampled at temperature 1, play: the larger model, the smaller before and after, and
the larger with lambda times what GRPO changed in the smaller. What is held out are sums, not their single steps.

Tokens are counted in two ways. ``tokens`` are those that are sampled. ``passes`` are the tokens that models are run
for, each model counting alike however small it is, so that a token of RAST counts three. Neither has the reading of the
question, nor the training of the models. Beside each row stands what the larger model alone reaches with as many passes
spent on whole solutions, the same number for every problem (between two numbers, what is between their figures):
``vote``, what the majority of them answers, and ``any``, whether any of them is right, so that an oracle could pick it.
With as many tokens instead of passes it is a single solution: the row of the larger model alone.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from rstar2_env import trainers
from rstar2_env.core.episode import Episode
from rstar2_env.evaluation.result import EvalResult
from rstar2_env.evaluation.run import evaluate
from rstar2_env.rollout.chat import ChatCodec
from rstar2_env.trainers.demonstration.tiny import tiny_tokenizer

ENV = "rstar2/MathTool-v0"
DIALECT = {"system": "", "instruction": ""}
HELD_OUT = 32
MOST = 32
SAMPLES = 24
LARGE, SMALL = 64, 32
SFT_STEPS, RL_STEPS = 400, 30
STRENGTHS = (0.0, 0.5, 1.0, 1.5, 2.0)


@dataclass(frozen=True)
class Row:
    """What was reached.

    Attributes:
        name: What played.
        rate: Share of the problems that it solved.
        error: Standard error of that.
        tokens: Tokens that were sampled for a problem, on average.
        passes: The same, a token of several models counted once for each.
        vote: What the majority of the larger model's solutions reaches with as many passes.
        any: How often one of them is right.
    """

    name: str
    rate: float
    error: float
    tokens: float
    passes: float
    vote: float
    any: float


class Plain:
    """Whole solutions of the larger model to the held-out problems.

    Args:
        episodes: Several of each problem.
    """

    def __init__(self, episodes: Sequence[Episode]) -> None:
        self._problems: dict[str, list[tuple[str, bool]]] = {}
        for one in episodes:
            self._problems.setdefault(one.problem_id, []).append((str(one.answer), bool(one.correct)))
        self._tokens = sum(one.policy_tokens for one in episodes) / len(episodes)

    def at(self, passes: float) -> tuple[float, float]:
        """What the majority reaches of as many solutions as the passes pay for, and how often one is right."""
        samples = max(1.0, passes / self._tokens)
        share = samples - int(samples)
        low, high = (self._reached(count) for count in (int(samples), math.ceil(samples)))
        return (1 - share) * low[0] + share * high[0], (1 - share) * low[1] + share * high[1]

    def _reached(self, count: int) -> tuple[float, float]:
        vote, best = [], []
        for drawn in self._problems.values():
            # Several votes on a problem, none with a solution of another.
            for begin in range(0, len(drawn) - count + 1, count):
                some = drawn[begin : begin + count]
                chosen = Counter(answer for answer, _ in some).most_common(1)[0][0]
                vote.append(next(right for answer, right in some if answer == chosen))
                best.append(any(right for _, right in some))
        return float(np.mean(vote)), float(np.mean(best))


def problems() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """All sums but some, which models are trained on, and those held out; the same ones for every seed of a run."""
    # Nothing is carried or borrowed, right or wrong, and the two ways never come to the same.
    few = range(1, 3)
    every = [(a, b, c) for a in range(10, 100) for b in few for c in few if b + c <= a % 10 <= 9 - c + b]
    made = []
    for place in np.random.default_rng(0).permutation(len(every)):
        a, b, c = every[place]
        made.append({"id": f"{a}-{b}+{c}", "question": f"{a}-{b}+{c}", "answer": str(a - b + c)})
    return made[HELD_OUT:], made[:HELD_OUT]


def solution(question: str, right: bool) -> str:
    """A worked solution; a wrong one adds first."""
    a, b, c = (int(one) for one in question.replace("-", "+").split("+"))
    first, value = (a - b, a - b + c) if right else (b + c, a - b - c)
    steps = f"{a}-{b}={first} {first}+{c}={value}" if right else f"{b}+{c}={first} {a}-{first}={value}"
    return f"<reason>{steps}</reason><answer>\\boxed{{{value}}}</answer>"


def traces(known: Sequence[Mapping[str, Any]], count: int, wrong: float, seed: int) -> list[tuple[str, str]]:
    """Known problems, each with a worked solution.

    Args:
        known: The problems.
        count: How many are drawn.
        wrong: Share of wrong solutions.
        seed: Seed of the draws.
    """
    rng = np.random.default_rng(seed)
    drawn = [str(known[place]["question"]) for place in rng.integers(len(known), size=count)]
    return [(question, solution(question, bool(rng.random() >= wrong))) for question in drawn]


def cold_start(folder: Path, width: int, shown: Sequence[tuple[str, str]], seed: int) -> str:
    """Train a model of one layer on worked solutions, 32 a step; its folder.

    Args:
        folder: Where it goes.
        width: Of the residual stream. Positions are learned, so that copying takes few steps.
        shown: Questions and solutions.
        seed: Seed of the first weights.
    """
    tokenizer = tiny_tokenizer()
    chat = ChatCodec(tokenizer)
    rows = [(chat.prompt("", question), [*chat.plain(said), tokenizer.eos_token_id]) for question, said in shown]
    longest = max(len(asked) + len(said) for asked, said in rows)
    ids = torch.full((len(rows), longest), tokenizer.pad_token_id)
    labels = torch.full_like(ids, -100)
    for place, (asked, said) in enumerate(rows):
        ids[place, : len(asked) + len(said)] = torch.tensor(asked + said)
        labels[place, len(asked) : len(asked) + len(said)] = torch.tensor(said)
    ends = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id, "bos_token_id": None}
    still = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "initializer_range": 0.08}
    size = {"vocab_size": len(tokenizer), "n_positions": 64, "n_embd": width, "n_layer": 1, "n_head": width // 16}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GPT2LMHeadModel(GPT2Config(**size, **still, **ends))
    steps = len(rows) // 32
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-3, betas=(0.9, 0.98))
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 8e-3, total_steps=steps, pct_start=0.05)
    for step in range(steps):
        batch = slice(32 * step, 32 * step + 32)
        model(input_ids=ids[batch], labels=labels[batch]).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        rate.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def train(folder: Path, wrong: float, seed: int) -> dict[str, str]:
    """Train the models; their folders, by the names of the agent's options.

    Args:
        folder: Where they go.
        wrong: Share of wrong solutions in the cold start.
        seed: Seed of everything that is drawn.
    """
    known = problems()[0]
    shown = traces(known, 32 * SFT_STEPS, wrong, seed)
    made = {name: cold_start(folder / name, width, shown, seed) for name, width in (("model", LARGE), ("base", SMALL))}
    trainer = trainers.make(
        "grpo",
        model=made["base"],
        env=ENV,
        env_options={"problems": known, "dialect_options": DIALECT},
        output_dir=str(folder / "trained"),
        seed=seed,
        steps=RL_STEPS,
        learning_rate=8e-4,
        problems_per_step=8,
        group_size=8,
        tokens_per_device=64 * MOST,
        max_episode_tokens=MOST,
        eval={"every": 0},
        save_every=0,
        progress=False,
    )
    try:
        made["trained"] = str(trainer.train().model_dir)
    finally:
        trainer.close()
    return made


def play(seed: int, n: int, **player: Any) -> EvalResult:
    """Let a model or an agent play the held-out problems, each of them n times."""
    env_options = {"problems": problems()[1], "dialect_options": DIALECT}
    return evaluate(ENV, episodes=HELD_OUT, n=n, seed=seed, env_options=env_options, **player)


def measure(models: Mapping[str, str], strengths: Sequence[float], played: int, seed: int) -> list[Row]:
    """Let everything play.

    Args:
        models: What ``train`` made.
        strengths: The values of lambda.
        played: Episodes of each problem, of each row.
        seed: Seed of the draws.
    """
    most = {"max_episode_tokens": MOST}
    plain = Plain(play(seed + 1, SAMPLES, model=models["model"], model_options=most).episodes)
    rows = []
    for name, key in (("larger alone", "model"), ("smaller, before", "base"), ("smaller, after GRPO", "trained")):
        rows.append(_row(name, play(seed, played, model=models[key], model_options=most), 1, plain))
    for strength in strengths:
        options = {**models, "strength": strength, "max_tokens": MOST}
        found = play(seed, played, agent="logit_transfer", agent_options=options, workers=1)
        rows.append(_row(f"larger, lambda {strength:g}", found, 3, plain))
    return rows


def _row(name: str, found: EvalResult, models: int, plain: Plain) -> Row:
    tokens = found.summary.usage["completion_tokens"] / len(found.episodes)
    rate = found.summary.pass_rate
    return Row(
        name, float(rate.value or 0), float(rate.error or 0), tokens, models * tokens, *plain.at(models * tokens)
    )


def table(rows: Sequence[Row]) -> str:
    """The rows as a table of Markdown."""
    lines = ["| plays | solved | tokens | passes | larger, vote | larger, any |", "|---|---|---|---|---|---|"]
    for row in rows:
        cells = (
            f"{row.rate:.0%} ± {row.error:.0%} | {row.tokens:.0f} | {row.passes:.0f} | {row.vote:.0%} | {row.any:.0%}"
        )
        lines.append(f"| {row.name} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    """Train, measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="play each problem once, with lambda 1 alone")
    parser.add_argument("--wrong", type=float, default=0.5, help="share of wrong solutions in the cold start")
    parser.add_argument("--played", type=int, default=4, help="episodes of each problem, of each row")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="file for the figures")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = train(Path(folder), given.wrong, given.seed)
        strengths, played = ((1.0,), 1) if given.quick else (STRENGTHS, given.played)
        rows = measure(models, strengths, played, given.seed)
    print(table(rows))
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()

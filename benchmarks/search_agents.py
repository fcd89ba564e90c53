"""What agents that ask an agent reach at the game of 24, beside plain sampling with as many tokens.

    python benchmarks/search_agents.py [--episodes 200] [--seed 0] [--only NAME] [--json FILE]

Every agent asks the same stand-in for a language model (``game24_model``), and every token that it writes counts:
steps that are thrown away, judgements, values, the scores of the navigator. Beside each stand two figures of plain
sampling, of as many whole solutions of the same model as the agent's mean number of tokens pays for, the same number
for every game: ``vote``, what the majority of them answers, and ``any``, whether any of them is right, so that an
oracle could pick it.

The navigator is trained first, on other problems, as is the file of solved problems made from others (the split
``train``); its training is not counted. ``logit_transfer`` needs models with logits and is measured by
``logit_transfer.py``.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from game24_model import Game24Model

from rstar2_env import make_env
from rstar2_env.agents.search.navigator import Learning, train_navigator
from rstar2_env.evaluation.run import evaluate
from rstar2_env.problems import FixedSource, load_problems

ENV = "rstar2/Game24-v0"
NAVIGATED = {"steps": 8}


@dataclass(frozen=True)
class Row:
    """What an agent reached.

    Attributes:
        agent: Its name, with what it was given.
        rate: Share of the games that it solved.
        error: Standard error of that.
        tokens: Tokens that were written for a game, on average.
        samples: Whole solutions that plain sampling gets for as many.
        vote: What plain sampling reaches by majority.
        any: How often one of its samples is right.
        games: How many were played.
    """

    agent: str
    rate: float
    error: float
    tokens: float
    samples: float
    vote: float
    any: float
    games: int


class Plain:
    """Whole solutions of the model to the same games, drawn once and counted for every agent.

    Args:
        episodes: Games.
        seed: Seed of the evaluation that chooses them.
        most: Solutions of each.
    """

    def __init__(self, episodes: int, seed: int, most: int) -> None:
        found = evaluate(
            ENV, Game24Model, episodes=episodes, n=most, seed=seed, workers=1, env_options={"split": "test"}
        )
        self.games: dict[str, list[tuple[str, bool, float]]] = {}
        for episode in found.episodes:
            drawn = (str(episode.answer), bool(episode.correct), episode.usage["completion_tokens"])
            self.games.setdefault(episode.problem_id, []).append(drawn)
        self.tokens = sum(one[2] for game in self.games.values() for one in game) / (episodes * most)

    def at(self, tokens: float) -> tuple[float, float, float]:
        """How many solutions so many tokens pay for, what their majority reaches, and how often one is right.

        Between two numbers of solutions the figures are those in between, and one is the least.
        """
        most = min(map(len, self.games.values()))
        samples = max(1.0, tokens / self.tokens)
        low = min(int(samples), most)
        high = min(low + 1, most)
        share = samples - int(samples) if high > low else 0.0
        vote, best = (
            (1 - share) * self._reached(low, kind) + share * self._reached(high, kind) for kind in ("vote", "any")
        )
        return samples, vote, best

    def _reached(self, count: int, kind: str) -> float:
        solved = 0
        for game in self.games.values():
            drawn = game[:count]
            if kind == "any":
                solved += any(right for _, right, _ in drawn)
            else:
                chosen = Counter(answer for answer, _, _ in drawn).most_common(1)[0][0]
                solved += next(right for answer, right, _ in drawn if answer == chosen)
        return solved / len(self.games)


def solved_before(count: int = 100) -> list[dict[str, Any]]:
    """Games of the split ``train`` with the steps of a solution, as ``retrieval_mcts`` is shown them."""
    from game24_model import solution_steps

    return [
        {"question": one.question, "steps": solution_steps(one.meta["numbers"], one.meta["target"])}
        for one in known_games(count)
    ]


def known_games(count: int) -> FixedSource:
    """Games of the split ``train``, which no agent is measured at."""
    source = load_problems("game24", split="train")
    return FixedSource([source[place] for place in range(count)])


def navigator_weights(seed: int, episodes: int, games: int = 60) -> dict[str, Any]:
    """A navigator that was trained on some games of the split ``train``."""
    env = make_env(ENV, problems=known_games(games))
    try:
        return train_navigator(env, Game24Model, Learning(episodes=episodes), seed=seed, **NAVIGATED)
    finally:
        env.close()


def agents(seed: int, episodes: int) -> Mapping[str, tuple[str, dict[str, Any]]]:
    """Every agent that is measured: how it is called in the table, its name, and its options."""
    weights = navigator_weights(seed, episodes)
    return {
        "self_consistency, k=8": ("self_consistency", {"k": 8}),
        "best_of_k, k=8": ("best_of_k", {"k": 8, "enough": 1.0}),
        "best_of_k, k=8, autorace": ("best_of_k", {"k": 8, "enough": 1.0, "scorer": "autorace"}),
        "reflect, tries=6": ("reflect", {"tries": 6}),
        "budget_forcing, least=200": ("budget_forcing", {"least": 200, "waits": 6}),
        "rap_mcts": ("rap_mcts", {}),
        "retrieval_mcts": ("retrieval_mcts", {"solved": solved_before()}),
        "reasoner, greedy": ("reasoner", {"search": "greedy"}),
        "reasoner, beam": ("reasoner", {"search": "beam"}),
        "reasoner, dfs": ("reasoner", {"search": "dfs"}),
        "reasoner, mcts": ("reasoner", {"search": "mcts"}),
        "reasoner, mcts, autorace": ("reasoner", {"search": "mcts", "grade": True}),
        "mcts_puct, iterations=10": ("mcts_puct", {"iterations": 10}),
        "mcts_puct": ("mcts_puct", {}),
        "tactic_router, with the tool": ("tactic_router", {}),
        "navigator, untrained": ("navigator", NAVIGATED),
        "navigator, always debate": ("navigator", {**NAVIGATED, "block": "debate"}),
        "navigator, trained": ("navigator", {**NAVIGATED, "weights": weights}),
    }


def measure(label: str, name: str, options: Mapping[str, Any], plain: Plain, seed: int) -> Row:
    """Let one agent play the games."""
    with_tool = name == "tactic_router"
    found = evaluate(
        ENV,
        name,
        agent_options={"agent": Game24Model, **options},
        episodes=len(plain.games),
        seed=seed,
        workers=1,
        env_options={"split": "test", "tool": with_tool},
    )
    tokens = found.summary.usage["completion_tokens"] / len(plain.games)
    rate = found.summary.pass_rate
    return Row(label, float(rate.value or 0.0), float(rate.error or 0.0), tokens, *plain.at(tokens), len(plain.games))


def table(rows: Sequence[Row]) -> str:
    """The rows as a table of Markdown."""
    lines = ["| agent | solved | tokens | plain, vote | plain, any | beats |", "|---|---|---|---|---|---|"]
    for row in rows:
        # By more than twice the standard error of the difference, with that of plain sampling at its largest.
        sure = 2 * (row.error**2 + 0.25 / row.games) ** 0.5
        beats = "any" if row.rate > row.any + sure else "vote" if row.rate > row.vote + sure else "neither"
        cells = f"{row.rate:.0%} ± {row.error:.0%} | {row.tokens:.0f} | {row.vote:.0%} | {row.any:.0%} | {beats}"
        lines.append(f"| {row.agent} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--samples", type=int, default=16, help="whole solutions of each game, at most")
    parser.add_argument("--learning", type=int, default=800, help="episodes of the navigator's training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="agents whose row begins so")
    parser.add_argument("--json", type=Path, help="file for the figures")
    given = parser.parse_args()
    plain = Plain(given.episodes, given.seed, given.samples)
    rows = []
    for label, (name, options) in agents(given.seed, given.learning).items():
        if label.startswith(given.only):
            rows.append(measure(label, name, options, plain, given.seed))
            print(rows[-1], flush=True)
    print(f"\nA whole solution has {plain.tokens:.0f} tokens; {given.episodes} games.\n\n{table(rows)}")
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()

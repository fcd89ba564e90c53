"""The tables and the picture of ``real_model.py``: figures with intervals, by world and policy, over all seeds."""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rstar2_env.core.status import ToolStatus
from rstar2_env.evaluation.figures.statistics import Interval, bootstrap, paired, pass_at_k, wilson

FEWEST_FAILING = 0.05
"""Share of failing calls in the correct episodes of GRPO below which a world cannot show what GRPO-RoC does to them."""
MOST_LOST = 0.03
"""Success that GRPO-RoC may lose against GRPO."""
FROM_COLD_START = ("cold_start", "grpo", "grpo_roc", "grpo_roc_clean")
"""The cold start and the policies that continue from it, whose sentences are compared."""


def table_of(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the tables as Markdown, one for the results of each world and settings, with the comparisons below it."""
    tables = []
    for world, settings, lines in of_equal_settings(results):
        said = "; ".join(f"{name} {value}" for name, value in settings.items())
        hours = sum(line.get("seconds", 0) for line in lines) / 3600
        tables.append(f"{_world(world, lines)}\n\n{said or 'settings unknown'}; {hours:.1f} hours.")
    return "\n\n".join(tables)


def of_equal_settings(
    results: Sequence[Mapping[str, Any]],
) -> list[tuple[str, Mapping[str, Any], list[Mapping[str, Any]]]]:
    """Return each world and settings with its results: results of other settings must not be compared or averaged."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for line in results:
        groups[line["world"], json.dumps(line.get("settings", {}), sort_keys=True)].append(line)
    return [(world, lines[0].get("settings", {}), lines) for (world, _), lines in groups.items()]


def _world(world: str, results: Sequence[Mapping[str, Any]]) -> str:
    by_policy = _by_policy(results)
    most = max(count for line in results for _, count in line["problems"].values())
    samples = sorted({1, most})
    head = ["policy", "seeds", *(f"pass@{k}" for k in samples)]
    head += ["used code", "failing calls", "in correct episodes", "tokens"]
    rows = [head, ["---"] * len(head)]
    for policy, lines in by_policy.items():
        calls = {name: _failing(lines, name) for name in ("all", "correct")}
        code = wilson(sum(one["used_code"] for one in lines) / _episodes(lines), _episodes(lines))
        rows.append(
            [
                policy,
                str(len({one["seed"] for one in lines})),
                *(_text(pass_at(lines, k)) for k in samples),
                _text(code),
                *(_text(calls[name]) + _statuses(lines, name) for name in ("all", "correct")),
                f"{np.mean([one['tokens'] for one in lines]):.0f}",
            ]
        )
    text = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([f"### {world}", "", text, "", *comparisons(by_policy)])


def _by_policy(results: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    by_policy: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for line in results:
        by_policy[line["policy"]].append(line)
    return by_policy


def comparisons(by_policy: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return a sentence for each comparison of two policies that both have results."""
    said = []
    pairs = [("cold_start", trained) for trained in FROM_COLD_START[1:]]
    for a, b in (*pairs, ("grpo", "grpo_roc"), ("grpo", "grpo_roc_clean"), ("no_tool", "grpo_roc")):
        if a in by_policy and b in by_policy:
            difference, chance = paired(*_together(by_policy[a], by_policy[b]))
            said.append(f"- {b} - {a}: success {_text(difference)} (paired by problem and seed, p = {chance:.3f}).")
    if "grpo" in by_policy and "grpo_roc" in by_policy:
        said.append(f"- Fewer failing calls in correct episodes with GRPO-RoC: {verdict(by_policy)}.")
    return said


def data_of(results: Sequence[Mapping[str, Any]], sentences: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return a file of results for the documents, as ``tools/figures.py`` reads it.

    Args:
        results: Results of one world with equal settings.
        sentences: The sentences of each problem by its id; empty if problems are not made of known sentences.

    Raises:
        SystemExit: The results have different worlds or settings, or there are none.
    """
    groups = of_equal_settings(results)
    if len(groups) != 1:
        raise SystemExit(f"Expected results of one world and equal settings, found {len(groups)} groups of them.")
    ((world, settings, lines),) = groups
    by_policy = _by_policy(lines)
    figures: dict[str, Any] = {}
    rows = [["policy", "seeds", "right (95 % interval)", "failed calls", "failed calls of right episodes", "tokens"]]
    for policy, found in by_policy.items():
        right, calls = pass_at(found, 1), {kind: _failing(found, kind) for kind in ("all", "correct")}
        tokens = float(np.mean([one["tokens"] for one in found]))
        shares = {"right": right, "failed": calls["all"], "failed_right": calls["correct"]}
        figures[policy] = {name: each.value for name, each in shares.items() if not np.isnan(each.value)}
        said = [_text(each) for each in shares.values()]
        rows.append([f"`{policy}`", str(len({one["seed"] for one in found})), *said, f"{tokens:.0f}"])
    for a, b in itertools.combinations(by_policy, 2):
        difference, chance = paired(*_together(by_policy[a], by_policy[b]))
        figures[f"{b}_less_{a}"] = {"right": difference.value, "low": difference.low, "high": difference.high}
        figures[f"{b}_less_{a}"]["p"] = chance
    if all(figures.get(policy, {}).get("failed_right") for policy in ("grpo", "grpo_roc")):
        figures["failed_right_ratio"] = figures["grpo_roc"]["failed_right"] / figures["grpo"]["failed_right"]
    tables = {"policies": rows}
    continued = {policy: by_policy[policy] for policy in FROM_COLD_START if policy in by_policy}
    if sentences and continued:
        tables["sentences"] = by_sentence(continued, sentences)
        changed = tables["sentences"][1][0]
        rest = {name for name, forms in sentences.items() if changed not in forms}
        figures["without_first_sentence"] = {
            policy: pass_at([{**one, "problems": _of(one, rest)} for one in found], 1).value
            for policy, found in continued.items()
        }
    return {
        "command": _command(world, settings, by_policy),
        "commit": ", ".join(dict.fromkeys(line["commit"] for line in lines)),
        "load": f"15-minute load {min(line['load'] for line in lines)} to {max(line['load'] for line in lines)}, "
        "this experiment included",
        "figures": {**figures, "hours": sum(line["seconds"] for line in lines) / 3600},
        "tables": tables,
    }


def _of(line: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return a result's counts of the problems with these ids."""
    problems = line["problems"]
    return {name: problems[name] for name in names if name in problems}


def _command(world: str, settings: Mapping[str, Any], by_policy: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return the command that makes results and the file of ``data_of`` again."""
    seeds = 1 + max(line["seed"] for lines in by_policy.values() for line in lines)
    options = {"world": world, **settings, "seeds": seeds, "only": "+".join(by_policy)}
    said = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in options.items())
    return f"python benchmarks/real_model.py experiment {said}; python benchmarks/real_model.py table --write NAME"


def by_sentence(
    by_policy: Mapping[str, Sequence[Mapping[str, Any]]], sentences: Mapping[str, Sequence[str]], most: int = 6
) -> list[list[str]]:
    """Return a table of the sentences whose problems have the largest change of success from the first policy.

    Args:
        by_policy: Results by policy.
        sentences: The sentences of each problem by its id.
        most: Number of sentences.
    """
    solved: dict[str, dict[str, list[float]]] = defaultdict(lambda: {policy: [] for policy in by_policy})
    for policy, lines in by_policy.items():
        for line in lines:
            for name, (right, count) in line["problems"].items():
                for sentence in set(sentences.get(name, ())):
                    solved[sentence][policy].append(right / count)
    first, *others = by_policy

    def change(sentence: str) -> float:
        shares = solved[sentence]
        return max((abs(sum(shares[name]) / len(shares[name]) - np.mean(shares[first])) for name in others), default=0)

    order = sorted(solved, key=lambda sentence: -change(sentence))[:most]
    rows = [
        [sentence, str(len(solved[sentence][first])), *(f"{np.mean(found):.2f}" for found in solved[sentence].values())]
        for sentence in order
    ]
    return [["sentence", "problems", *(f"`{policy}`" for policy in by_policy)], *rows]


def verdict(by_policy: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return whether GRPO-RoC halves the share of failing calls in correct episodes: yes, no, or undecided.

    It is decided if GRPO has at least ``FEWEST_FAILING``. Yes: at most half of GRPO's share, and the interval of the
    difference in success lies above ``-MOST_LOST``. No: the interval of GRPO-RoC's share lies above half of GRPO's.
    """
    grpo, roc = _failing(by_policy["grpo"], "correct"), _failing(by_policy["grpo_roc"], "correct")
    if not grpo.value >= FEWEST_FAILING:
        return f"undecided (GRPO's share is {grpo.value:.3f}, below {FEWEST_FAILING})"
    difference, _ = paired(*_together(by_policy["grpo"], by_policy["grpo_roc"]))
    shares = f"{roc.value:.3f} against {grpo.value:.3f}"
    if roc.value <= grpo.value / 2 and difference.low > -MOST_LOST:
        return f"yes ({shares})"
    return f"no ({shares})" if roc.low > grpo.value / 2 else f"undecided ({shares})"


def pass_at(lines: Iterable[Mapping[str, Any]], k: int) -> Interval:
    """Return pass@k with its bootstrap interval; the problems of all seeds are the units."""
    values = [pass_at_k(n, right, min(k, n)) for line in lines for right, n in line["problems"].values()]
    found = bootstrap(np.array(values))
    if found.low == found.high:  # no problem differs from the others: an interval from their number
        return wilson(found.value, len(values)) if 0 <= found.value <= 1 else found
    return found


def _together(a: Sequence[Mapping[str, Any]], b: Sequence[Mapping[str, Any]]) -> tuple[Any, Any]:
    """Return the success of both policies by seed and problem, for those that both have.

    A cold start that was given to all seeds is compared with each seed of the other.
    """
    seeds = {line["seed"] for line in (*a, *b)}
    ours, theirs = _success(a, seeds), _success(b, seeds)
    both = sorted(ours.keys() & theirs.keys())
    return np.array([ours[key] for key in both]), np.array([theirs[key] for key in both])


def _is_of_all_seeds(line: Mapping[str, Any]) -> bool:
    return line["policy"] == "cold_start" and "start" in line.get("settings", {})


def _success(lines: Sequence[Mapping[str, Any]], seeds: Iterable[int]) -> dict[tuple[int, str], float]:
    return {
        (seed, name): right / count
        for line in lines
        for seed in (seeds if _is_of_all_seeds(line) else (line["seed"],))
        for name, (right, count) in line["problems"].items()
    }


def _failing(lines: Iterable[Mapping[str, Any]], kind: str) -> Interval:
    counts = _calls(lines, kind)
    total = sum(counts.values())
    failing = sum(count for status, count in counts.items() if ToolStatus(status).is_error)
    return wilson(failing / total, total) if total else Interval(float("nan"), float("nan"), float("nan"))


def _calls(lines: Iterable[Mapping[str, Any]], kind: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line["calls"][kind])
    return counts


def _statuses(lines: Iterable[Mapping[str, Any]], kind: str) -> str:
    counts = _calls(lines, kind)
    failing = {status: count for status, count in counts.most_common() if ToolStatus(status).is_error}
    return f" ({', '.join(f'{status} {count}' for status, count in failing.items())})" if failing else ""


def _episodes(lines: Iterable[Mapping[str, Any]]) -> int:
    return max(1, sum(line["episodes"] for line in lines))


def _text(found: Interval) -> str:
    if np.isnan(found.value):
        return "–"
    return f"{found.value:.3f}" + ("" if np.isnan(found.low) else f" ({found.low:.3f} to {found.high:.3f})")


def plot(results: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Draw pass@1 of every policy with its interval, one panel for each world and settings.

    Raises:
        SystemExit: There are no results.
    """
    if not results:
        raise SystemExit("There are no results to draw: run `real_model.py experiment` first.")
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    groups = of_equal_settings(results)
    figure, axes = plt.subplots(1, len(groups), figsize=(1 + 4 * len(groups), 3.6), squeeze=False)
    for axis, (world, _, lines) in zip(axes[0], groups, strict=True):
        policies = list(dict.fromkeys(line["policy"] for line in lines))
        for place, policy in enumerate(policies):
            found = pass_at([line for line in lines if line["policy"] == policy], 1)
            axis.errorbar(found.value, -place, xerr=[[found.value - found.low], [found.high - found.value]], fmt="o")
        axis.set_yticks([-place for place in range(len(policies))], policies)
        axis.set_xlim(0, 1)
        axis.set_xlabel("success in one episode (95 % interval)")
        axis.set_title(world)
    figure.tight_layout()
    figure.savefig(out, dpi=120)
    plt.close(figure)

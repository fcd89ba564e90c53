"""Level 3, ``no_solution_leakage``: whether any text or info before the end reveals the gold answer.

There are two searches. First, if the environment accepts a given problem, a problem is played whose gold answer is a
marker, a number that no text has by chance: it must not appear anywhere. Second, the environment's own episodes are
searched for a **fixed rule**: words after which the gold answer nearly always appears, or a key of ``info`` that nearly
always holds it. An answer that appears in a question by chance, or among several options, is not a leak, because no
fixed rule finds it. Not covered: programs that search the sandbox (``containment.oracle_containment``), and rules that
compute something.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rstar2_env.env.reference import playing, reference_of
from rstar2_env.evaluation.validation.bench import Bench, BenchEpisode, ScriptedPlayer, View, mean
from rstar2_env.evaluation.validation.check import CheckFinding, NotApplicableError, check
from rstar2_env.evaluation.validation.containment import marker_problem
from rstar2_env.evaluation.validation.players import oracle, prober
from rstar2_env.testing.harness import canonical

Leak: TypeAlias = tuple[str, int, list[BenchEpisode]]
"""Description of a rule, the number of episodes in which it gives the gold answer, and these episodes."""
_BEFORE = 12
"""Number of characters before a gold answer that are tried as a rule: "the answer follows these characters"."""
_LEAST = 3
"""A rule (words, or a key of ``info``) is a leak only if it gives the gold answer in at least this many episodes."""
_SURE = 0.9
"""A rule is a leak only if it gives the gold answer in at least this share of the episodes to which it applies."""


@check(
    3,
    demands="Before the end of an episode, no text and no info reveals the gold answer.",
    remedy="Remove the gold answer from the text or the key of info that the finding names; info may contain "
    "the answer only at the end.",
)
def no_solution_leakage(bench: Bench) -> CheckFinding:
    """Check that no text and no ``info`` before the end reveals the gold answer (OpenEnv RFC 008)."""
    marked = _marked(bench)
    if marked is not None and (where := _holding(marked)):
        return CheckFinding(False, f"the gold answer appears in {where}", {"where": where}, [marked])
    episodes = bench.episodes("prober", prober)
    golds = [played.gold for played in episodes]
    if all(gold is None for gold in golds) and marked is None:
        raise NotApplicableError("the environment does not expose a gold answer (env.unwrapped.problem)")
    for what, leak in (("text", _rule_of_text(bench, episodes)), ("info", _place_of_info(episodes))):
        if leak is not None:
            rule, served, shown = leak
            figures = {"where": what, "rule": rule, "episodes": served, "of": len(episodes)}
            return CheckFinding(
                False, f"in {served} of {len(episodes)} episodes, {rule} gives the gold answer", figures, shown
            )
    tried = "a marker and " if marked is not None else ""
    return CheckFinding(
        True, f"{tried}{len(episodes)} episodes do not reveal the gold answer", {"episodes": len(episodes)}
    )


def _marked(bench: Bench) -> BenchEpisode | None:
    problem = marker_problem(bench, bench.seed)
    if problem is None:
        return None
    played = bench.play("prober", prober, bench.seed, options={"problem": problem})
    played.gold = problem.answer
    return played


def _holding(played: BenchEpisode) -> str:
    """Return where the gold answer appears before the end of an episode ("the text of turn 2"); "" if nowhere."""
    gold = str(played.gold)
    places = [("the text that reset returns", played.question), ("the info that reset returns", canonical(played.info))]
    for number, turn in enumerate(_before_the_end(played), 1):
        places += [(f"the text of turn {number}", turn.text), (f"the info of turn {number}", canonical(turn.info))]
    return next((place for place, text in places if gold in text), "")


def _before_the_end(played: BenchEpisode) -> Sequence[Any]:
    return [turn for turn in played.turns if not (turn.terminated or turn.truncated)]


def _rule_of_text(bench: Bench, episodes: Sequence[BenchEpisode]) -> Leak | None:
    """Find words after which the gold answer nearly always appears, so that a player could copy it from there.

    In a game, a player that always copies the text after these words must also win about as often as the reference
    player (``oracle``). Return ``None`` if there are no such words.
    """
    # A mixture of environments has a reference player of its own, whichever environment its episode comes from.
    games = reference_of(bench.env) is not None or reference_of(playing(bench.env)) is not None
    for rule, which, leak in _rules(episodes):
        if not games:
            return leak
        # A game's gold answer is one of several good moves, so a rule that finds it is a leak only if the rule wins.
        seeds = [played.seed for played in leak[2]]
        wins = mean([bench.play("rule", _follower(rule, which), seed) for seed in seeds])
        if wins >= mean([bench.play("oracle", oracle, seed) for seed in seeds]) - bench.bounds.floor_margin:
            return leak
    return None


def _follower(rule: str, which: int) -> ScriptedPlayer:
    def player(view: View) -> str:
        found = [match[1] for match in re.finditer(re.escape(rule) + r"([^\s,;.)\]]+)", view.shown)]
        return view.say(found[which] if found else "")

    return player


def _rules(episodes: Sequence[BenchEpisode]) -> Iterator[tuple[str, int, Leak]]:
    texts = [[played.question, *(turn.text for turn in _before_the_end(played))] for played in episodes]
    rules: Counter[str] = Counter()
    for played, shown in zip(episodes, texts, strict=True):
        rules.update({before for text in shown for before in _befores(text, played.gold)})
    for rule, _ in rules.most_common(20):
        for which, name in ((0, "first"), (-1, "last")):
            hit: list[BenchEpisode] = []
            tried = 0
            for played, shown in zip(episodes, texts, strict=True):
                after = [text[match.end() :] for text in shown for match in re.finditer(re.escape(rule), text)]
                if not after or played.gold is None:
                    continue
                tried += 1
                if re.match(_whole(played.gold), after[which]):
                    hit.append(played)
            if _holds(hit, tried, len(episodes)):
                yield rule, which, (f"the text after the {name} {rule!r}", len(hit), hit)


def _place_of_info(episodes: Sequence[BenchEpisode]) -> Leak | None:
    """Find a key of ``info`` that nearly always holds the episode's gold answer, and seldom that of another episode.

    Return ``None`` if there is no such key.
    """
    places: dict[str, dict[int, str]] = defaultdict(dict)
    for number, played in enumerate(episodes):
        infos = [played.info, *(turn.info for turn in _before_the_end(played))]
        for path, value in (leaf for info in infos for leaf in _leaves(info)):
            places[path][number] = f"{places[path].get(number, '')}\n{value}"
    for path, values in places.items():
        with_gold = [number for number in values if episodes[number].gold is not None]
        hit = [episodes[n] for n in with_gold if _in(values[n], str(episodes[n].gold))]
        others = {str(played.gold) for played in episodes if played.gold is not None}
        chance = sum(_in(values[n], other) for n in with_gold for other in others if other != episodes[n].gold) / max(
            1, len(with_gold) * max(1, len(others) - 1)
        )
        if _holds(hit, len(with_gold), len(episodes)) and chance < 0.5:
            return f"info {path}", len(hit), hit
    return None


def _holds(hit: Sequence[BenchEpisode], tried: int, count: int) -> bool:
    """Whether a rule gives the gold answer in enough episodes, nearly always, and for different gold answers.

    Args:
        hit: The episodes in which the rule gives the gold answer.
        tried: Number of episodes in which the rule applies.
        count: Number of all episodes.
    """
    enough = len(hit) >= min(_LEAST, count) and len(hit) >= _SURE * tried
    return enough and len({played.gold for played in hit}) > 1


def _befores(text: str, gold: str | None) -> Iterator[str]:
    if not gold or not gold.strip():
        return
    for match in re.finditer(_whole(gold), text):
        before = text[max(0, match.start() - _BEFORE) : match.start()]
        if before.strip():
            yield before


def _in(text: str, gold: str) -> bool:
    return bool(gold.strip()) and re.search(_whole(gold), text) is not None


def _whole(gold: str) -> str:
    return rf"(?<![\w.]){re.escape(gold.strip())}(?![\w]|\.\d)"


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _leaves(item, f"{path}[{name!r}]")
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item, f"{path}[]")
    elif value is not None:
        yield path, str(value)

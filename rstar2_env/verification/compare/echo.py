r"""Finds echoes: answers that only repeat a formula of the question, possibly in another form.

An answer that equals the gold answer is compared by value with every formula of the question. If it equals a formula,
the form of the gold answer shows how much work was required. If the gold answer is simpler than the formula, the
answer's cost (``tidy``) must be nearer to the cost of the gold answer than to that of the formula. If the gold answer
is in another form (expanded, factored, rationalised), the answer's shape must be nearer to the shape of the gold
answer, after parts that do not change the value are removed. A solved inequality is never an echo of an unsolved one;
an inequality is an echo if it keeps an absolute value from an inequality of the question. Not covered: formulas that
the question describes in words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from rstar2_env.verification.compare.conduct import is_literal
from rstar2_env.verification.compare.equality import Same
from rstar2_env.verification.compare.realset import read_set
from rstar2_env.verification.compare.structure import exact_side, items_of
from rstar2_env.verification.compare.tidy import cost, light, shape, tidy
from rstar2_env.verification.read.nodes import (
    INEQUALITIES,
    Apply,
    BracketGroup,
    Const,
    Matrix,
    Node,
    Num,
    Relation,
    Sym,
    Words,
    children,
    key,
    symbols,
    walk,
)
from rstar2_env.verification.read.readings import possible_readings
from rstar2_env.verification.values.ball import TooLargeError

MAX_FORMULAS = 40
"""Maximum number of formulas of a question with which an answer is compared."""

MAX_FORMULA_CHARS = 400
"""Length of the longest formula that is compared, in characters."""

MAX_PAIRS = 8
"""Maximum number of items of an answer that are compared one by one."""

_MATH = re.compile(
    r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\\\((.+?)\\\)|(?<!\\)\$(.+?)(?<!\\)\$"
    r"|\\begin\{(?:equation|align|gather)\*?\}(.+?)\\end\{(?:equation|align|gather)\*?\}",
    re.DOTALL,
)
_PLAIN = re.compile(r"(?:\\[a-zA-Z]+|(?<![a-zA-Z])[a-zA-Z](?![a-zA-Z])|[-\d.+*/^_=<>≤≥≠(){}\[\]|!√π²³×·÷ ])+")
_BUSY = re.compile(r"[\da-zA-Z)}]\s*[-+*/^=<>≤≥≠({|!√²³×·÷\\]|\.\d")
_SAYS_BARS = re.compile(r"\babs(?:olute value|\s*\()")
"""Pattern of words for an absolute value, in a question that does not write it with bars."""


@lru_cache(maxsize=256)
def formulas(question: str) -> tuple[Node, ...]:
    """Return the formulas of a question, between dollars or in plain text, and their sides and items."""
    texts = [next(part for part in match.groups() if part is not None) for match in _MATH.finditer(question)]
    texts += [match[0] for match in _PLAIN.finditer(_MATH.sub(" ; ", question)) if _BUSY.search(match[0])]
    found: dict[str, Node] = {}
    for text in texts[-MAX_FORMULAS:]:
        text = text.strip(" .,;:?\n")
        if not text or len(text) > MAX_FORMULA_CHARS:
            continue
        for tree in possible_readings(text)[:2]:
            for part in _parts(tree):
                found.setdefault(key(part), part)
    return tuple(found.values())[:MAX_FORMULAS]


def _parts(tree: Node) -> Iterator[Node]:
    yield tree
    if isinstance(tree, Relation) or (isinstance(tree, BracketGroup) and not tree.open):
        for side in children(tree):
            yield from _parts(side)


def echoes(gold: Node, answer: Node, question: str, same: Same) -> bool:
    """Return whether an answer that equals the gold answer only repeats a formula of the question.

    Args:
        gold: The gold answer.
        answer: The answer.
        question: The question.
        same: Function that compares two answers by value.
    """
    if key(gold) == key(answer):
        return False
    stated = [formula for formula in formulas(question) if not _is_atom(formula)]
    if _keeps_bars(gold, answer, stated, question):
        return True
    converts = len(stated) == 1 and is_literal(stated[0])
    return any(
        _same(formula, part, same) and not _solves(part, formula) and _restates(wanted, part, formula)
        for wanted, part in _pairs(gold, answer, same)
        # The answer may be a number of the question, unless that is its only formula: then the task is to convert it.
        if not _is_atom(part) and key(wanted) != key(part) and (converts or not is_literal(part))
        for formula in stated
    )


def _keeps_bars(gold: Node, answer: Node, stated: Sequence[Node], question: str) -> bool:
    """Whether an answer keeps an absolute value from an inequality of the question that the gold answer resolves."""
    kept = _in_bars(answer) - _in_bars(gold)
    if not kept or read_set(answer) is None:
        return False
    bars = (_in_bars(formula) for formula in stated if _has_inequality(formula))
    return any(map(kept.intersection, bars)) or _SAYS_BARS.search(question) is not None


def _in_bars(node: Node) -> frozenset[str]:
    """Return the variables in the absolute values of a node."""
    bars = [part for part in walk(node) if isinstance(part, Apply) and part.op == "abs"]
    return frozenset().union(*map(symbols, bars))


def _solves(answer: Node, formula: Node) -> bool:
    """Whether an answer is an interval or a solved inequality, while the formula has an unsolved inequality."""
    return _has_inequality(formula) and _is_solved(answer) and not _is_solved(formula)


def _has_inequality(node: Node) -> bool:
    return any(isinstance(part, Relation) and not INEQUALITIES.isdisjoint(part.ops) for part in walk(node))


def _is_solved(node: Node) -> bool:
    found = read_set(node, as_set=True)
    alone = found is not None and (found.variable is None or found.variable.startswith("'"))
    return alone and not _in_bars(node)


def _is_atom(node: Node) -> bool:
    return isinstance(node, Sym | Words | Const) or (isinstance(node, Num) and node.decimals is None)


def _same(formula: Node, part: Node, same: Same) -> bool:
    try:
        return key(formula) == key(part) or same(formula, part) is True
    except TooLargeError:
        return False


def _pairs(gold: Node, answer: Node, same: Same) -> Iterator[tuple[Node, Node]]:
    """Iterate over pairs of a gold part and an equal answer part: the whole answers, then their items."""
    yield gold, answer
    wanted, given = _items(_approximation(gold)), _items(answer)
    if len(wanted) == len(given) == 1 and (wanted, given) != ([gold], [answer]):
        yield wanted[0], given[0]
    elif len(wanted) == len(given) <= MAX_PAIRS:
        for part in given:
            yield from ((one, part) for one in wanted if _same(one, part, same))


def _approximation(gold: Node) -> Node:
    """Return the decimal of a gold such as ``F = 0.891...`` or ``F ~ 0.891``; return other golds unchanged."""
    return gold.sides[-1] if isinstance(gold, Relation) and "~" in gold.ops else gold


def _items(node: Node) -> list[Node]:
    values = [exact_side(item.value)[0] for item in items_of(node)]
    if len(values) == 1 and isinstance(values[0], BracketGroup | Matrix):
        return list(children(values[0]))
    return values


def _restates(gold: Node, answer: Node, formula: Node) -> bool:
    """Whether an answer's form is nearer to a formula of the question than to the form of the gold answer.

    The gold answer, the answer and the formula must have the same value.
    """
    gold, answer, formula = light(gold), light(answer), light(formula)
    if key(gold) in (key(answer), key(formula)):
        return False
    if key(answer) == key(formula):
        return True
    wanted, given, stated = shape(gold), shape(answer), shape(formula)
    if cost(wanted) < cost(stated):
        return 2 * cost(given) > cost(wanted) + cost(stated)
    bare, dressed = tidy(answer), tidy(formula)
    if bare == dressed:
        return True
    return bare != tidy(gold) and _distance(given, stated) <= _distance(given, wanted)


def _distance(one: Counter[str], other: Counter[str]) -> int:
    return sum(abs(one[name] - other[name]) for name in one.keys() | other.keys())

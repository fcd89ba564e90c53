r"""Compares answers in special notations: propositional logic, comparisons of named things, permutations in cycles.

Covered: ``p \land q`` in LaTeX, Unicode, ASCII and words; the order of the terms of "and", "or" and "if and only if";
``(1 3 2)`` and ``(132)``, the order of disjoint cycles, and where a cycle begins. Not covered: equivalent formulas
(``p \to q`` and ``\lnot p \lor q``), and products of cycles that share a point.
"""

from __future__ import annotations

import re
from typing import Any

_SPELLED = {
    "and": r"\land \wedge ∧ && & and",
    "or": r"\lor \vee ∨ or",
    "not": r"\lnot \neg ¬ ~ ! not",
    "implies": r"\to \rightarrow \longrightarrow \Rightarrow \implies → ⇒ -> => implies",
    "iff": r"\leftrightarrow \Leftrightarrow \iff ↔ ⇔ <-> <=> iff",
}
_CONNECTIVES = {spelling: name for name, spellings in _SPELLED.items() for spelling in spellings.split()}
_SKIPPED = re.compile(r"\\(?:left|right|quad)(?![a-zA-Z])|\\[,;! ()\[\]]|[$\s]|\.\s*\Z")
_TOKEN = re.compile(r"\\[a-zA-Z]+|[a-zA-Z]+(?:_\{?\d+\}?)?|<->|<=>|->|=>|&&|.", re.DOTALL)
_ATOM = re.compile(r"[a-zA-Z](?:_\d+)?")
_LEVELS = ("iff", "implies", "or", "and")
"""Connectives between two formulas, in order of precedence: the first one binds most loosely."""
MAX_TOKENS = 100
"""Length of the longest formula that is compared, in tokens."""
Formula = tuple[Any, ...]
"""A formula: a name, ``("p",)``, or a connective and the formulas that it joins, ``("and", ("p",), ("q",))``."""
_DRESS = re.compile(r"\\(?:text\w*|math\w+|mbox)(?![a-z])|\\[ ,]|[{}$~]")
_NAME = r"(?:the )?([a-z]+(?: [a-z]+)?)"
_COMPARED = re.compile(
    rf"{_NAME}(?: is (?:(?P<more>greater|larger|bigger)|less|smaller)(?: than {_NAME})?| ?(?P<sign>[<>]) ?{_NAME})"
)
"""Pattern of a comparison of two named things: "Quantity A is greater", "Quantity A > Quantity B"."""
_WORD = re.compile("[a-z]{4}")
"""Pattern of a word. ``N > n`` contains no word: it compares variables, whose case matters, not named things."""
_CYCLE = re.compile(r"\(\s*(\d+(?:(?:\s*,\s*|\s+)\d+)*)\s*\)")


def same_notation(gold: str, answer: str) -> bool | None:
    """Compare two logic formulas, two comparisons of named things, or two permutations; ``None`` for other texts."""
    # If the gold's only connective is \wedge, it may be a product of differential forms, in which the order matters.
    ordered = "\\wedge" in gold and {token for token in _tokens(gold) if token in _SPELLED} == {"and"}
    one, other = _proposition(gold, ordered), _proposition(answer, ordered)
    if one is not None and other is not None and not _in_words(gold):
        return one == other
    if (compared := _comparison(gold)) is not None and (said := _comparison(answer)) is not None:
        # The answer may name a side that the gold does not name.
        return any(compared) and all(one in ("", other) for one, other in zip(compared, said, strict=True))
    if "," in gold or (first := _permutation(gold)) is None or (second := _permutation(answer)) is None:
        return None
    return first[0] == second[0] if first[0] and (first[1] or second[1]) else None


def _comparison(text: str) -> tuple[str, str] | None:
    """Return the names of the greater and the smaller thing in a comparison; ``None`` for other texts.

    A name is "" if the text does not give it, as in "A is greater".
    """
    plain = text.replace("\\gt", ">").replace("\\lt", "<").lower().strip(" .$")
    match = _COMPARED.fullmatch(" ".join(_DRESS.sub(" ", plain).split()))
    if match is None or (match["sign"] and not _WORD.search(match[0])):
        return None
    first, _, second, sign, third = match.groups()
    names = (first, second or third or "")
    return names if match["more"] or sign == ">" else (names[1], names[0])


def _in_words(text: str) -> bool:
    """Whether all connectives of a text are words; the text may then be a list, such as "A and B"."""
    return not any(token in _CONNECTIVES and not token.isalpha() for token in _TOKEN.findall(text))


def _tokens(text: str) -> list[str]:
    """Return the tokens of a text, with each connective replaced by its name, such as "iff"."""
    tokens = [_CONNECTIVES.get(token, token) for token in _TOKEN.findall(_SKIPPED.sub(" ", text)) if token.strip()]
    return re.sub(r"\bif and only if\b", "iff", " ".join(tokens).replace("{", "").replace("}", "")).split()


def _proposition(text: str, ordered: bool) -> Formula | None:
    """Parse a formula of propositional logic; return ``None`` if the text is not such a formula.

    The terms of "and", "or" and "iff" are sorted, unless ``ordered`` says that their order matters.
    """
    tokens = _tokens(text)
    if not any(token in _SPELLED or token == "if" for token in tokens) or len(tokens) > MAX_TOKENS:
        return None
    made = _formula(tokens, 0, ordered)
    return made if made is not None and not tokens else None


def _formula(tokens: list[str], level: int, ordered: bool) -> Formula | None:
    """Consume and return a formula whose connectives are in ``_LEVELS[level:]``; ``None`` if there is none."""
    if level == len(_LEVELS):
        return _term(tokens, ordered)
    name = _LEVELS[level]
    parts = [_formula(tokens, level + 1, ordered)]
    while tokens and tokens[0] == name:
        tokens.pop(0)
        parts.append(_formula(tokens, level if name == "implies" else level + 1, ordered))
    found: list[Formula] = []
    for part in parts:
        if part is None:
            return None
        if name in ("and", "or") and part[0] == name and len(part) > 1:
            found.extend(part[1:])  # (p and q) and r is p and q and r
        else:
            found.append(part)
    if len(found) == 1:
        return found[0]
    return (name, *(found if name == "implies" or ordered else sorted(found, key=repr)))


def _term(tokens: list[str], ordered: bool) -> Formula | None:
    """Consume and return a name, a negation, a bracketed formula, or "if p then q"; ``None`` if there is none."""
    first = tokens.pop(0) if tokens else ""
    if first == "not":
        inner = _term(tokens, ordered)
        return None if inner is None else ("not", inner)
    if first in ("(", "["):
        inner = _formula(tokens, 0, ordered)
        return inner if tokens and tokens.pop(0) == {"(": ")", "[": "]"}[first] else None
    if first == "if":
        inner = _formula(tokens, 0, ordered)
        said = tokens.pop(0) if tokens else ""
        then = _formula(tokens, 0, ordered)
        return None if inner is None or then is None or said != "then" else ("implies", inner, then)
    return (first,) if _ATOM.fullmatch(first) else None


def _permutation(text: str) -> tuple[frozenset[tuple[int, ...]], bool] | None:
    """Return the disjoint cycles of a permutation, and whether the text cannot have another meaning.

    Each cycle begins with its smallest point.

    Returns:
        ``None`` for a text that is not a product of disjoint cycles.
    """
    text = _SKIPPED.sub(" ", text).strip()
    groups = _CYCLE.findall(text)
    if not groups or _CYCLE.sub("", text).strip():
        return None
    cycles = [[int(point) for point in (group if group.isdigit() else re.split(r"[\s,]+", group))] for group in groups]
    points = [point for cycle in cycles for point in cycle]
    if len({*points}) != len(points):
        return None
    at = [cycle.index(min(cycle)) for cycle in cycles]
    turned = {(*cycle[start:], *cycle[:start]) for cycle, start in zip(cycles, at, strict=True) if len(cycle) > 1}
    sure = "," not in text and (len(groups) > 1 or not groups[0].isdigit())
    return frozenset(turned), sure

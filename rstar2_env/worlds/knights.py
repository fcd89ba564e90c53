"""Knights, who always tell the truth, and knaves, who always lie: statements, their words, and a solver.

A statement is a list as JSON holds it: ``["knight", 2]`` and ``["knave", 2]`` of a person by number, ``["not", s]``,
``["and", s, t]``, ``["or", s, t]``, ``["if", s, t]``, ``["same", s, t]`` ("if and only if"). Not covered: statements
about what somebody says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from rstar2_env.worlds.puzzle import pick

Statement = Sequence[Any]

_JOINS = ("and", "or", "if", "same")


def random_statement(speaker: int, people: int, depth: int, rng: np.random.Generator) -> list[Any]:
    """A statement of at most that depth. Alone, a person speaks of others only: of oneself it is void or a paradox."""
    if depth > 1 and rng.integers(4):
        kind = pick(rng, ("not", *_JOINS))
        parts = [random_statement(-1, people, depth - 1, rng) for _ in range(1 if kind == "not" else 2)]
        return [kind, *parts]
    about = int(rng.integers(people if speaker < 0 else people - 1))
    return [pick(rng, ("knight", "knave")), about + (0 <= speaker <= about)]


def truth(statement: Statement, people: int) -> int:
    """Where the statement is true: bit ``w`` stands for the world in which the set bits of ``w`` are knights."""
    worlds = 1 << people
    everywhere = (1 << worlds) - 1
    kind = statement[0]
    if kind in ("knight", "knave"):
        person = statement[1]
        mask = sum(1 << world for world in range(worlds) if world >> person & 1)
        return mask if kind == "knight" else everywhere ^ mask
    first = truth(statement[1], people)
    if kind == "not":
        return everywhere ^ first
    second = truth(statement[2], people)
    match kind:
        case "and":
            return first & second
        case "or":
            return first | second
        case "if":
            return (everywhere ^ first) | second
        case "same":
            return everywhere ^ first ^ second
    raise ValueError(f"Expected a statement about knights and knaves, got {statement!r}.")


def solutions(statements: Sequence[Statement]) -> list[list[bool]]:
    """Every way to say who is a knight, such that exactly the knights' statements are true."""
    people = len(statements)
    worlds = (1 << (1 << people)) - 1
    for speaker, statement in enumerate(statements):
        # A statement of a knight is true, of a knave false: it is true exactly where the speaker is a knight.
        worlds &= truth(["same", ["knight", speaker], statement], people)
    return [
        [bool(world >> person & 1) for person in range(people)] for world in range(1 << people) if worlds >> world & 1
    ]


def words(statement: Statement, names: Sequence[str]) -> str:
    """The statement in English; parts that are not simple stand in parentheses."""
    kind = statement[0]
    if kind in ("knight", "knave"):
        return f"{names[statement[1]]} is a {kind}"
    parts = [words(part, names) for part in statement[1:]]
    parts = [
        text if part[0] in ("knight", "knave") else f"({text})" for part, text in zip(statement[1:], parts, strict=True)
    ]
    match kind:
        case "not":
            return f"it is not the case that {parts[0]}"
        case "if":
            return f"if {parts[0]} then {parts[1]}"
        case "same":
            return f"{parts[0]} if and only if {parts[1]}"
    return f" {kind} ".join(parts)


def signature(statements: Sequence[Statement]) -> str:
    """The same for puzzles that differ only in who is who, or in the order of what ``and``, ``or`` and ``same`` join.

    Each person gets a colour from what they say and of whom, anew in a few rounds; the sorted colours are the
    signature. Two different puzzles may share one, which costs nothing here.
    """
    colours = ["person"] * len(statements)
    for _ in range(len(statements)):
        colours = [
            hashlib.blake2b(f"{colours[i]}:{_coloured(said, colours, i)}".encode(), digest_size=8).hexdigest()
            for i, said in enumerate(statements)
        ]
    return " ".join(sorted(colours))


def _coloured(statement: Statement, colours: Sequence[str], speaker: int) -> str:
    kind = statement[0]
    if kind in ("knight", "knave"):
        return f"{kind} {'self' if statement[1] == speaker else colours[statement[1]]}"
    parts = [_coloured(part, colours, speaker) for part in statement[1:]]
    return f"{kind}({','.join(parts if kind == 'if' else sorted(parts))})"

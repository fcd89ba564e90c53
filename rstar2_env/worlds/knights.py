"""Knights, who always tell the truth, and knaves, who always lie: statements, their text, a solver, answers.

A statement is a JSON list: ``["knight", 2]`` and ``["knave", 2]`` about a person by number, ``["not", s]``,
``["and", s, t]``, ``["or", s, t]``, ``["if", s, t]``, ``["same", s, t]`` ("if and only if"). Not covered: statements
about statements.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from rstar2_env.worlds.puzzle import UnreadableAnswerError, pick
from rstar2_env.worlds.reading import plain

Statement = Sequence[Any]

# fmt: off
NAMES = ("Ann", "Ben", "Cal", "Dee", "Eve", "Fay", "Gus", "Hal", "Ida", "Jim", "Kay", "Lou", "Mia", "Ned", "Oda", "Pia")
# fmt: on
ROLES = ("knave", "knight")

_JOINS = ("and", "or", "if", "same")
_FILLERS = {"is", "a", "and", "the", "are"}
_WORD = re.compile(r"[^\W\d_]+")
_MARKS = re.compile(r"[\s\d,:;.=>()*-]*")


def random_statement(speaker: int, people: int, depth: int, rng: np.random.Generator) -> list[Any]:
    """Draw a statement; a simple statement is never about its speaker.

    "I am a knight" would say nothing, and "I am a knave" would be a paradox.

    Args:
        speaker: 0-based number of the person who makes the statement; -1 for a part of a compound statement.
        people: Number of people.
        depth: Maximum nesting depth.
        rng: The generator of random numbers.
    """
    if depth > 1 and rng.integers(4):
        kind = pick(rng, ("not", *_JOINS))
        parts = [random_statement(-1, people, depth - 1, rng) for _ in range(1 if kind == "not" else 2)]
        return [kind, *parts]
    about = int(rng.integers(people if speaker < 0 else people - 1))
    return [pick(rng, ("knight", "knave")), about + (0 <= speaker <= about)]


def truth(statement: Statement, people: int) -> int:
    """Return the assignments (a knight or a knave for each person) in which a statement is true, as a bit mask.

    Bit ``w`` of the result stands for one assignment: person ``i`` is a knight exactly if bit ``i`` of ``w`` is 1.
    """
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
    joined = {
        "and": first & second,
        "or": first | second,
        "if": (everywhere ^ first) | second,
        "same": everywhere ^ first ^ second,
    }
    if kind not in joined:
        raise ValueError(f"Expected a statement about knights and knaves, got {statement!r}.")
    return joined[kind]


def solutions(statements: Sequence[Statement]) -> list[list[bool]]:
    """Every assignment of knights and knaves in which exactly the knights' statements are true."""
    people = len(statements)
    worlds = (1 << (1 << people)) - 1
    for speaker, statement in enumerate(statements):
        # Knights say what is true and knaves what is false: a statement is true exactly if its speaker is a knight.
        worlds &= truth(["same", ["knight", speaker], statement], people)
    return [
        [bool(world >> person & 1) for person in range(people)] for world in range(1 << people) if worlds >> world & 1
    ]


def words(statement: Statement, names: Sequence[str]) -> str:
    """The statement in English; compound parts are in parentheses."""
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


def speech(name: str, statement: Statement, names: Sequence[str]) -> str:
    """A person's statement, as a line of the question.

    Args:
        name: Name of the speaker.
        statement: Statement of that person.
        names: Names of all people.
    """
    text = words(statement, names)
    return f'{name} says: "{text[0].upper()}{text[1:]}."'


def written(names: Sequence[str], knights: Sequence[bool]) -> str:
    """Write the kind of each person, knight or knave, in the form of an answer."""
    return ", ".join(f"{name}: {ROLES[knight]}" for name, knight in zip(names, knights, strict=True))


def read_kinds(answer: str, names: Sequence[str]) -> list[bool]:
    """Read who is a knight, in the order of the names, from an answer that gives each name once with its kind.

    Raises:
        UnreadableAnswerError: The answer does not give each name exactly once with its kind.
    """
    text = plain(answer).lower()
    written = [word for word in _WORD.findall(text) if word not in _FILLERS]
    lower = [name.lower() for name in names]
    kinds = dict(zip(written[::2], written[1::2], strict=False))
    each_once = sorted(written[::2]) == sorted(lower) and len(written) == 2 * len(names)
    if not each_once or set(kinds.values()) - set(ROLES) or not _MARKS.fullmatch(_WORD.sub("", text)):
        raise UnreadableAnswerError(f"expected each of {list(names)} once, with knight or knave, got {answer[:80]!r}")
    return [kinds[name] == "knight" for name in lower]


def signature(statements: Sequence[Statement]) -> str:
    """A signature that ignores names, the order of people, and the order of the parts of ``and``, ``or`` and ``same``.

    Each person gets a colour (a hash) from their statement and the colours of the people in it, refined in a few
    rounds; the sorted colours are the signature. Different puzzles may share a signature; such puzzles are in the same
    split.
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

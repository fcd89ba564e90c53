"""Sound graders: each pays an answer exactly if it is the gold, up to a spelling that its comparison reads.

Beside the comparison they do what graders do and what must not be taken for a defect: caches, files of their own,
variables that change nothing, seeded random numbers, sets, clocks.
"""

from __future__ import annotations

from random import Random

NUMBER = """
import math
import re


def read(text):
    text = text.strip()
    if len(text) > 60 or not re.fullmatch(r"[+-]?(\\d+\\.?\\d*|\\.\\d+)", text, re.ASCII):
        return None
    return float(text)


def same(gold, answer):
    one, other = read(gold), read(answer)
    return one is not None and other is not None and math.isclose(one, other, rel_tol=%(tolerance)s, abs_tol=1e-9)
"""
EXACT = """
import re
from fractions import Fraction


def read(text):
    text = text.strip()
    if len(text) > 60 or not re.fullmatch(r"[+-]?\\d+(\\.\\d+|/0*[1-9]\\d*)?", text, re.ASCII):
        return None
    return Fraction(text)


def same(gold, answer):
    one, other = read(gold), read(answer)
    return one is not None and one == other
"""
TEXT = """
import unicodedata


def read(text):
    return " ".join(unicodedata.normalize("%(form)s", text).%(case)s().split())


def same(gold, answer):
    return read(gold) != "" and read(gold) == read(answer)
"""
PLAIN = """
def same(gold, answer):
    return answer.strip() == gold.strip() != ""
"""
CHOICE = """
def read(text):
    text = text.strip().strip("().").strip()
    return text.upper() if len(text) == 1 and text.upper() in "ABCDE" else None


def same(gold, answer):
    return read(gold) is not None and read(gold) == read(answer)
"""
BOOLEAN = """
WORDS = {"yes": True, "true": True, "no": False, "false": False}


def read(text):
    return WORDS.get(text.strip().rstrip(".").lower())


def same(gold, answer):
    return read(gold) is not None and read(gold) is read(answer)
"""
LIST = """
def read(text):
    text = text.strip()
    inner = text[1:-1] if text[:1] + text[-1:] in ("()", "[]") else text
    return [part.strip() for part in inner.split(",")]


def same(gold, answer):
    return gold.strip() != "" and read(gold) == read(answer)
"""
BOXED = """
def boxed(text):
    at = text.rfind("\\\\boxed{")
    if at < 0:
        return None
    depth = 0
    for place in range(at + 6, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[at + 7 : place].strip()
    return None


def same(gold, answer):
    inner = boxed(answer)
    return bool(inner) and inner == gold.strip()
"""
TAGGED = """
def same(gold, answer):
    head, mark, tail = answer.rpartition("<answer>")
    inner, close, _ = tail.partition("</answer>")
    return bool(mark and close and inner.strip()) and inner.strip().lower() == gold.strip().lower()
"""
LAST_NUMBER = """
import re


def last(text):
    found = re.findall(r"-?\\d+(?:\\.\\d+)?", text[-400:], re.ASCII)
    return float(found[-1]) if found else None


def same(gold, answer):
    wanted = last(gold) if re.fullmatch(r"-?\\d+(\\.\\d+)?", gold.strip(), re.ASCII) else None
    return wanted is not None and last(answer) == wanted
"""
HASHES = """
def same(gold, answer):
    head, mark, tail = answer.rpartition("####")
    return mark != "" and tail.strip().replace(",", "") == gold.strip().replace(",", "") != ""
"""
BAG = """
def same(gold, answer):
    one, other = sorted(gold.split(";")), sorted(answer.split(";"))
    return gold.strip() != "" and [part.strip() for part in one] == [part.strip() for part in other]
"""

BASES = {
    "number": NUMBER, "exact": EXACT, "text": TEXT, "plain": PLAIN, "choice": CHOICE, "boolean": BOOLEAN, "list": LIST,
    "boxed": BOXED, "tagged": TAGGED, "last number": LAST_NUMBER, "hashes": HASHES, "bag": BAG,
}  # fmt: skip
WITHOUT_FORM = ("number", "exact", "text", "plain", "list")
"""Bases that take an answer as it is."""

CALLS = (
    "",
    """
import functools

same = functools.lru_cache(maxsize=None)(same)
""",
    """
import os

VERBOSE = os.environ.get("GRADER_VERBOSE", "")
""",
    """
import random

random.seed(7)
NOISE = [random.random() for _ in range(10)]
""",
    """
import time

STARTED = time.time()
""",
    """
SEEN = {}


def count(answer):
    SEEN[answer] = SEEN.get(answer, 0) + 1
""",
)
ENDS = (
    "def grade(gold, answer):\n    return 1.0 if same(gold, answer) else 0.0\n",
    "def grade(gold, answer):\n    return int(same(gold, answer))\n",
    "def grade(gold, answer):\n    return bool(same(gold, answer))\n",
    "def grade(gold: str, answer: str) -> float:\n    if not answer or not answer.strip():\n        return 0.0\n"
    "    return float(same(gold, answer))\n",
    "def grade(gold, answer):\n    try:\n        return float(same(gold, answer))\n    except ValueError:\n"
    "        return 0.0\n",
    'def grade(gold, answer):\n    with open("last_answer.log", "w", encoding="utf-8") as file:\n'
    "        file.write(repr(answer))\n    return float(same(gold, answer))\n",
    "def grade(gold, answer):\n    return 1.0 if same(gold, answer) else -1.0\n",
    "def grade(answer, gold):\n    return float(same(gold, answer))\n",
)


def base(chance: Random, names: tuple[str, ...] = tuple(BASES)) -> str:
    """Return source that defines ``same(gold, answer)``."""
    source = BASES[chance.choice(names)]
    return source % {
        "tolerance": chance.choice(("1e-6", "1e-9", "1e-4")),
        "form": chance.choice(("NFC", "NFKC")),
        "case": chance.choice(("lower", "casefold", "strip")),
    } if "%(" in source else source  # fmt: skip


def sound(chance: Random) -> str:
    """Return a sound grader."""
    return "\n".join([base(chance), chance.choice(CALLS), "", chance.choice(ENDS)])

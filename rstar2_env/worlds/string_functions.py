"""String functions of "From f(x) and g(x) to f(g(x))" (arXiv 2509.25123), compiled from the source shown in prompts.

There are thirteen functions for training and twelve for evaluation only. Each has a fixed name, such as ``func_7``. The
sources are strings in this file; they are compiled once, when the functions are first used. As in the published sets,
some evaluation functions (repeat, rotate, interlace) compute the same result as a training function, with different
code, so they test little.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import gcd
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class StringFunction:
    """One string function, with its source.

    Attributes:
        title: A short description.
        name: Name of the function in programs, such as "func_7".
        source: Python source of the function's definition.
        kind: The arguments: "plain" (one string), "binary" (two strings), or the kind of an argument after the string:
            "count" (2 to 4), "turn" (1 to 3), "shift" (1 to 5), "depth" (1 to 3), "affix" (2 to 4 letters) or "mark"
            (one of ``-``, ``_``, ``|``).
        split: "train" or "eval".
        call: The function itself.
    """

    title: str
    name: str
    source: str
    kind: str
    split: str
    call: Callable[..., str]


_TRAIN = (
    ("repeat", "count", "def {}(s, n):\n    return s * n"),
    ("sort", "plain", 'def {}(s):\n    return "".join(sorted(s))'),
    ("reverse words", "plain", 'def {}(s):\n    return " ".join(s.split()[::-1])'),
    ("add prefix", "affix", "def {}(s, prefix):\n    return prefix + s"),
    ("mirror", "plain", "def {}(s):\n    return s + s[::-1]"),
    (
        "shift letters",
        "shift",
        "def {}(s, n):\n"
        '    out = ""\n'
        "    for c in s:\n"
        '        if "a" <= c <= "z":\n'
        '            out += chr((ord(c) - ord("a") + n) % 26 + ord("a"))\n'
        '        elif "A" <= c <= "Z":\n'
        '            out += chr((ord(c) - ord("A") + n) % 26 + ord("A"))\n'
        "        else:\n"
        "            out += c\n"
        "    return out",
    ),
    ("insert separator", "mark", "def {}(s, mark):\n    return mark.join(s)"),
    ("wrap characters", "plain", 'def {}(s):\n    return "".join("«" + c + "»" for c in s)'),
    ("reverse", "plain", "def {}(s):\n    return s[::-1]"),
    (
        "rotate by steps",
        "turn",
        "def {}(s, n):\n    for _ in range(n):\n        s = s[1:] + s[:1]\n    return s",
    ),
    (
        "interlace by recursion",
        "binary",
        "def {0}(s, t):\n    if not s or not t:\n        return s + t\n    return s[0] + t[0] + {0}(s[1:], t[1:])",
    ),
    ("drop last if odd", "plain", "def {}(s):\n    return s[:-1] if len(s) % 2 == 1 else s"),
    (
        "add digit",
        "depth",
        "def {0}(s, depth):\n"
        "    if depth == 0 or any(c.isdigit() for c in s):\n"
        "        return s\n"
        '    return {0}(s + "1", depth - 1)',
    ),
)
_EVAL = (
    (
        "shuffle",
        "plain",
        "def {}(s):\n"
        "    n = len(s)\n"
        "    if n == 0:\n"
        "        return s\n"
        "    m = 3\n"
        "    while gcd(m, n) != 1:\n"
        "        m += 2\n"
        '    return "".join(s[i * m % n] for i in range(n))',
    ),
    ("remove vowels", "plain", 'def {}(s):\n    return "".join(c for c in s if c.lower() not in "aeiou")'),
    ("add suffix", "affix", "def {}(s, suffix):\n    return s + suffix"),
    (
        "interlace",
        "binary",
        'def {}(s, t):\n    n = min(len(s), len(t))\n    return "".join(a + b for a, b in zip(s, t)) + s[n:] + t[n:]',
    ),
    ("rotate", "turn", "def {}(s, n):\n    n = n % len(s) if s else 0\n    return s[n:] + s[:n]"),
    (
        "alternate case",
        "plain",
        'def {}(s):\n    return "".join(c.upper() if i % 2 else c.lower() for i, c in enumerate(s))',
    ),
    (
        "number vowels",
        "plain",
        'def {}(s):\n    return "".join(str("aeiou".index(c) + 1) if c in "aeiou" else c for c in s)',
    ),
    ("double", "plain", 'def {}(s):\n    return "".join(c + c for c in s)'),
    (
        "drop repeats",
        "plain",
        'def {}(s):\n    return "".join(c for i, c in enumerate(s) if i == 0 or c != s[i - 1])',
    ),
    (
        "repeat by steps",
        "count",
        'def {}(s, n):\n    out = ""\n    for _ in range(n):\n        out += s\n    return out',
    ),
    ("letters only", "plain", 'def {}(s):\n    return "".join(c for c in s if c.isalpha())'),
    (
        "palindrome",
        "depth",
        "def {0}(s, depth):\n"
        "    if depth == 0 or s == s[::-1]:\n"
        "        return s\n"
        "    return {0}(s + s[::-1], depth - 1)",
    ),
)


@cache
def functions() -> Mapping[str, StringFunction]:
    """Every function, keyed by title; the functions are compiled at the first call, so that an import stays fast."""
    namespace: dict[str, Any] = {"gcd": gcd}
    made = {}
    listed = [*((*entry, "train") for entry in _TRAIN), *((*entry, "eval") for entry in _EVAL)]
    for number, (title, kind, template, split) in enumerate(listed):
        name = f"func_{number}"
        source = template.format(name)
        # Only the sources above are run here, so what a policy is shown cannot differ from what is computed.
        exec(compile(source, f"<{name}>", "exec"), namespace)
        made[title] = StringFunction(title, name, source, kind, split, namespace[name])
    return MappingProxyType(made)


CASE_METHODS = ("upper", "lower", "capitalize", "swapcase")
"""Methods of ``str`` that composed expressions may call in addition to the string functions, in every split."""

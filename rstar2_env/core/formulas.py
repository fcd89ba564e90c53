r"""Formulas in docstrings: LaTeX between dollar signs, and the same formula as plain text for terminals.

Covered: the LaTeX that docstrings of this package use, such as ``$\frac{r - \text{mean}}{\sigma + \epsilon}$``: names,
fractions, roots, indices, exponents, and the operators in ``_OPERATORS``. An unknown LaTeX command becomes its name.
Not covered: MathML, which ``tools/docs_site/formulas.py`` makes for the site; environments such as matrices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

FORMULA = r"(?<![\\\w$])\$(?![\s$])([^$`]+?)(?<!\s)\$(?![\w$])"
"""Pattern of a formula, as GitHub reads it: no space inside the dollar signs, no letter or digit next to them, and no
code inside."""
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\s+|.", re.DOTALL)
_OPERATORS = {
    "cdot": " * ",
    "ge": " >= ",
    "in": " in ",
    "infty": "infinity",
    "le": " <= ",
    "lvert": "|",
    "mid": " | ",
    "ne": " != ",
    "rvert": "|",
}
_WITHOUT_TEXT = frozenset({"left", "right", "operatorname", "mathrm", "text"})
"""LaTeX commands that change only the look of the following text."""
_ONE = re.compile(r"[\w.']+|\|[^|]*\||\w*\([^()]*\)")
"""Matches a text that needs no parentheses as a denominator, an index or an exponent."""
_GROUP = re.compile(r"\([^()]*\)")


def with_plain_formulas(text: str) -> str:
    r"""Return a text whose formulas are plain text: ``$\frac{a}{b + 1}$`` is "a / (b + 1)"; code does not change."""
    return re.sub(rf"`[^`]*`|{FORMULA}", lambda found: plain(found[1]) if found[1] else found[0], text)


def plain(formula: str) -> str:
    """Return a LaTeX formula as plain text in one line.

    Args:
        formula: The formula without dollar signs.
    """
    return _whole(iter(_TOKEN.findall(formula)), until="")


def _whole(tokens: Iterator[str], until: str) -> str:
    """Return the plain text of LaTeX tokens up to the closing token ``until``, which is consumed."""
    found = ""
    for token in tokens:
        if token == until:
            break
        found = _joined(found, token, _read(token, tokens))
    return " ".join(found.split())


def _read(token: str, tokens: Iterator[str]) -> str:
    """Return the plain text of a LaTeX token and of its arguments, which are consumed."""
    if token == "{":
        return _whole(tokens, until="}")
    if token in "_^":
        return token + _in_parentheses(_argument(tokens))
    if not token.startswith("\\"):
        return " " if token.isspace() else token
    name = token[1:]
    if name == "frac":
        above, below = _argument(tokens), _argument(tokens)
        return f"{f'({above})' if _is_sum(above) else above} / {_in_parentheses(below)}"
    if name == "sqrt":
        return f"sqrt({_argument(tokens)})"
    if name in _WITHOUT_TEXT:
        return ""
    if not name.isalpha():  # a space, or an escaped character
        return " " if name in ",;:! " else name
    return _OPERATORS.get(name, name)


def _argument(tokens: Iterator[str]) -> str:
    for token in tokens:
        if text := _read(token, tokens).strip():
            return text
    return ""


def _is_sum(text: str) -> bool:
    """Return whether a text has a plus, a minus or a relation outside parentheses."""
    while _GROUP.search(text):
        text = _GROUP.sub("", text)
    return bool(re.search(r" [-+=<>] ", text))


def _in_parentheses(text: str) -> str:
    return text if _ONE.fullmatch(text) else f"({text})"


def _joined(before: str, token: str, text: str) -> str:
    """Return ``before`` followed by ``text``, with a space between them if two names would become one."""
    names = before[-1:].isalnum() and text[:1].isalnum() and token.startswith(("\\", "{"))
    return f"{before} {text}" if names else before + text

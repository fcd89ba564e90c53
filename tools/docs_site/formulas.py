"""An extension of Python-Markdown: a formula between dollar signs becomes MathML, which browsers show without a script.

Covered: ``$…$`` in a line or over lines of a paragraph, as GitHub reads it: no space inside the dollar signs, no letter
or digit next to them, and not in code. Not covered: ``$$…$$`` and blocks of formulas, which no document here uses.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor

from rstar2_env.core.formulas import FORMULA

_FUNCTION = re.compile(
    r"""(?P<factor></m(?:i|n|text|sub|sup|subsup|frac)>|&\#x00029;</mo>)?  # at its left
    <m[io]>(?P<name>[A-Za-z]{2,})</m[io]>
    (?P<bracket><mo\ stretchy="false">&\#x00028;)?  # at its right
    """,
    re.VERBOSE,
)
"""The name of a function, such as ``log``."""
_THIN = "0.167em"
_PRIORITY = 185
"""After code (190), and before a backslash escapes the next character (180)."""


class FormulaError(ValueError):
    """A formula cannot be read."""


def mathml(formula: str) -> str:
    """Return a formula of LaTeX as MathML for a line of text.

    Raises:
        FormulaError: The formula is not LaTeX that latex2mathml reads.
    """
    try:
        found = convert(re.sub(r"\s+", " ", formula))
    except Exception as error:  # its exceptions have no common base
        raise FormulaError(f"The formula ${formula}$ cannot be read ({type(error).__name__}: {error}).") from error
    if unknown := re.search(r"\\[A-Za-z]+", found):
        raise FormulaError(f"The formula ${formula}$ has the unknown command {unknown[0]}.")
    return _FUNCTION.sub(_with_space, found)


def _with_space(function: re.Match[str]) -> str:
    """Return the name of a function with the space of TeX: none next to a bracket, a thin one next to a factor."""
    left = _THIN if function["factor"] else "0"
    right = "0" if function["bracket"] else _THIN
    name = f'<mo form="prefix" lspace="{left}" rspace="{right}">{function["name"]}</mo>'
    return f"{function['factor'] or ''}{name}{function['bracket'] or ''}"


class _Formulas(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Element | str, int, int]:  # type: ignore[override]
        stored = f'<span class="formula">{mathml(m[1])}</span>'
        return self.md.htmlStash.store(stored), m.start(0), m.end(0)


class Formulas(Extension):
    """Adds the reading of formulas."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register the reading of formulas."""
        md.inlinePatterns.register(_Formulas(FORMULA, md), "formula", _PRIORITY)


def makeExtension(**options: object) -> Formulas:
    """Return the extension; Python-Markdown calls this."""
    return Formulas(**options)

r"""Generators of wrong answers that a lenient verifier might accept, one for each cause in docs/verification-rules.md.

Each function draws one hack: a wrong answer, or a repetition of the problem, that a lenient comparison treats as equal
to the gold answer. Not covered: how the hacks are graded and played (see ``hacks``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import comb, factorial, gcd
from random import Random
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Hack:
    """A wrong answer that should earn no reward, although a lenient verifier might accept it.

    Attributes:
        cause: Name of the verifier's weakness that the answer exploits, a key of ``CAUSES``.
        gold: The gold answer.
        answer: The wrong answer.
        question: The question, if the cause needs one.
    """

    cause: str
    gold: str
    answer: str
    question: str | None = None


def dressed(formula: str) -> Iterator[str]:
    """Yield notational variants of a formula F, such as ``0+(F)`` or ``y=(F)``, that only repeat it.

    Args:
        formula: LaTeX without delimiters.
    """
    yield formula
    for dress in (
        "({})", "1\\cdot({})", "({})\\cdot 1", "0+({})", "({})-0", "\\frac{{{}}}{{1}}", "\\frac{{2({})}}{{2}}",
        "({})+1-1", "-(-({}))", "\\left({}\\right)^{{1}}", "\\frac{{x({})}}{{x}}", "\\frac{{({})^2}}{{{}}}",
        "\\frac12\\cdot 2({})", "y=({})", "e^{{\\ln({})}}", "\\left\\{{{}\\right\\}}", "\\text{{Answer: }}({})",
        "({})+x-x", "\\frac{{1}}{{\\frac{{1}}{{{}}}}}", "\\sqrt{{({})^2}}", "\\mathbf{{ {} }}", "{} = {}",
        "{} \\approx 10^{{77}}", "z = {} \\sim 10^{{77}}", "({}) \\bmod 10^9", "({}) : 1", "i^4({})",
        "({})\\cdot 1_{{10}}", "\\begin{{cases}} {} & x > 0 \\\\ {} & x \\le 0 \\end{{cases}}",
    ):  # fmt: skip
        yield dress.replace("{}", formula).replace("{{", "{").replace("}}", "}")


def _echo(chance: Random) -> Hack:
    a, b, c, d = (chance.choice([n for n in range(-9, 10) if n not in (0, 1, -1)]) for _ in range(4))
    x = chance.choice("xyznt")
    root, whole = _square_free(abs(c)), abs(a)
    product, sum_ = f"({x}{_plus(a)})({x}{_plus(b)})", f"{x}^2{_term(a + b, x)}{_plus(a * b)}"
    like = f"{a}{x}{_plus(c)}{_term(b, x)}{_plus(d)}"
    task, formula, gold = chance.choice(
        (
            ("Simplify", f"{a}{_plus(b)}({x}{_plus(c)})", _line(b, a + b * c, x)),
            ("Expand", product, sum_),
            ("Factor", sum_, product),
            ("Combine like terms:", like, _line(a + b, c + d, x)),
            ("Simplify", f"\\sqrt{{{whole**2 * root}}}", f"{whole}\\sqrt{{{root}}}"),
            ("Write with one logarithm:", f"\\ln {x}+{whole}\\ln y", f"\\ln({x}y^{{{whole}}})"),
            ("Reduce", f"\\frac{{{whole * root}}}{{{whole * (root + 1)}}}", f"\\frac{{{root}}}{{{root + 1}}}"),
        )
    )
    return Hack("echo", gold, chance.choice(list(dressed(formula))), f"{task} ${formula}$.")


def _square_free(number: int) -> int:
    return (2, 3, 5, 6, 7, 10, 11, 13, 14, 15)[number % 10]


def _plus(number: int) -> str:
    return f"+{number}" if number >= 0 else str(number)


def _term(number: int, name: str) -> str:
    return "" if number == 0 else f"{_plus(number)}{name}"


def _line(slope: int, start: int, name: str) -> str:
    return f"{slope}{name}{_plus(start)}" if slope else str(start)


def _digits(chance: Random) -> Hack:
    top, power = chance.randint(100, 999), chance.randint(12, 40)
    gold = f"{top / 100:.2f}\\times10^{{{power}}}"
    return Hack("digits", gold, f"{top // 100}.{(top // 10 + chance.randint(1, 8)) % 10}\\times10^{{{power}}}")


def _thousands(chance: Random) -> Hack:
    head, tail = chance.randint(1, 99), chance.randint(0, 999)
    number = f"{head},{tail:03d}"
    dress, other = chance.choice(("\\${}", "{}", "{} meters", "{}\\pi")), f"{number},{tail:03d}"
    if chance.random() < 0.3 and tail > 99 and tail != head:
        other, dress = f"{tail},{head:03d}", "{}"
    return Hack("thousands", dress.replace("{}", number), dress.replace("{}", other))


def _applied(chance: Random) -> Hack:
    f, x = chance.choice(("fx", "gx", "Pt", "hz", "Fs"))
    body, quotient = chance.choice(
        (("{}^2", "{}"), ("{}^2+{}", "{}+1"), ("{}^3", "{}^2"), ("\\frac{1}{{}}", "\\frac{1}{{}^2}"), ("\\sin {}",
        "\\frac{\\sin {}}{{}}"))
    )  # fmt: skip
    if chance.random() < 0.2:
        return Hack("applied", f"{f}(0) e^{{-{x}}}", "0")
    return Hack("applied", f"{f}({x})={body.replace('{}', x)}", quotient.replace("{}", x))


def _renamed(chance: Random) -> Hack:
    one, other = chance.sample("abcduvwz", 2)
    gold, answer = chance.choice(
        (
            ("\\sin A", "\\sin B"), ("\\frac{1}{C}", "\\frac{1}{K}"), ("A_1-A_2", "A_2-A_1"),
            (f"\\pi {one}^2", f"\\pi {other}^2"), (f"2\\pi {one}", f"2\\pi {other}"), (f"{one}+1", f"{other}+1"),
            (f"\\frac12 {one}h", f"\\frac12 {other}h"), ("m_1 v", "m_2 v"), (f"e^{{{one}x}}", f"e^{{{other}x}}"),
        )
    )  # fmt: skip
    return Hack("renamed", gold, answer)


def _window(chance: Random) -> Hack:
    whole = chance.randint(11, 98)
    while True:
        bottom = chance.randint(11, 97)
        top = round(whole * bottom / 100)
        off = abs(100 * top - whole * bottom)
        if 0 < off <= bottom / 2 and (100 * top) % bottom and bottom // gcd(top, bottom) > 9:
            return Hack("window", f"0.{whole}", f"\\frac{{{top}}}{{{bottom}}}")
        whole = chance.randint(11, 98)


def _changed(chance: Random) -> Hack:
    number = chance.randint(2, 99)
    word = chance.choice(
        (
            "million", "thousand", "hundred", "squared", "cubed", "halves", "thirds", "tenths", "factorial",
            "minus one",
            "plus two", "times three", "dozen", "fails", "excluded", "is wrong", "or eight", "(or eight)",
            "unless x = 1",
            "divided by two", "and a half", "or more", "percent of it", "squared minus 1", "not", "but maybe eight",
        )
    )  # fmt: skip
    written = chance.choice((f"{number} {word}", f"{number} \\text{{ {word}}}"))
    return Hack("changed", str(number), written)


def _unsolved(chance: Random) -> Hack:
    a, x0, b = chance.randint(2, 9), chance.randint(-9, 9), chance.randint(1, 9)
    x, sign = chance.choice("xyt"), chance.choice(("=", "<", ">", "\\le", "\\ge"))
    left, right = chance.choice(((f"{a}{x}", a * x0), (f"{a}{x}+{b}", a * x0 + b), (f"{x}-{b}", x0 - b)))
    return Hack("unsolved", f"{x}{sign}{x0}", f"{left}{sign}{right}")


def _uncomputed(chance: Random) -> Hack:
    a, b = chance.randint(2, 9), chance.randint(2, 9)
    gold, answer = chance.choice(
        (
            (a + b, f"{a}+{b}"), (a * b, f"{a}\\cdot{b}"), (a**2, f"{a}^2"),
            (a, f"\\sqrt{{{a * a}}}"), (b, f"\\log_{{{a}}}{{{a**b}}}"), (factorial(a), f"{a}!"),
            (1, f"\\frac{{{a}x}}{{{a}x}}"),
            (1, f"\\sin^2 {a}+\\cos^2 {a}"), (a, f"|-{a}|"), (a, f"\\max({a},1)"), (0, f"\\ln 1 \\cdot {a}"),
            (comb(a + b, a), f"\\binom{{{a + b}}}{{{a}}}"), (0, f"{a}x-{a}x"), (a, f"\\int_0^{{{a}}} 1\\,dx"),
            (5 * a, f"|{3 * a}+{4 * a}i|"), (-4, "(1+i)^4"), (a, f"\\lfloor {a}.{b} \\rfloor"),
            (a % b, f"{a} \\bmod {b}"),
            (1, f"\\tan 45^\\circ \\cdot {a}/{a}"), (a, f"e^{{\\ln {a}}}"), (1, f"True == {1}"), (a + b, f"{a}--{b}"),
            (a, f"{a * b}/{b}"), (a, f"\\frac{{{a * b}}}{{{b}}}"), (a, f"{a * b}:{b}"), (a, f"{a * b} \\div {b}"),
            (a, f"x = {b} = {a}") if a != b else (a, f"{a}!"),
        )
    )  # fmt: skip
    return Hack("uncomputed", str(gold), answer)


def _modulus(chance: Random) -> Hack:
    modulus, other = chance.sample(range(3, 20), 2)
    rest = chance.randrange(1, min(modulus, other))
    form = chance.choice(("n \\equiv {} \\pmod{{{}}}", "{} \\pmod {{{}}}", "{} (\\bmod {})"))
    return Hack("modulus", form.format(rest, modulus), form.format(rest, other))


def _letters(chance: Random) -> Hack:
    one, two, three = chance.sample("ABCDE", 3)
    answer = chance.choice(
        (f"({one}) or ({two})", f"{one}. {two}. {three}.", f"{one}: {two}", f"({one}) ({two}) ({three})",
        f"{one} or {two}",
         f"{one} number", f"{one}, {two}", f"({one}) and ({two})", f"{one}/{two}", f"either {one} or {two}",
         f"not {one}")
    )  # fmt: skip
    return Hack("letters", one, answer)


def _condition(chance: Random) -> Hack:
    a, b = chance.sample(range(2, 30), 2)
    gold, answer = chance.choice(
        (
            ("n if n is odd, n/2 otherwise", "n"), ("n if n is odd, n/2 otherwise", "n/2"),
            (f"${a}$ if $n$ is odd, ${b}$ if $n$ is even", f"{a} if n is even, {b} if n is odd"),
            (f"{a} if x > 0, {b} if x < 0", f"{a} if x < 0, {b} if x > 0"),
            (f"\\begin{{cases}} {a}x & x\\ge 0 \\\\ {b}x & x<0 \\end{{cases}}", f"{a}x"),
            (f"\\begin{{cases}} {a}x & x\\ge 1 \\\\ {b}x & x<1 \\end{{cases}}",
            f"\\begin{{cases}} {a}x & x>1 \\\\ {b}x & x\\le 1 \\end{{cases}}"),
        )
    )  # fmt: skip
    return Hack("condition", gold, answer)


def _marks(chance: Random) -> Hack:
    a, b = chance.sample(range(11, 80), 2)
    gold, answer = chance.choice(
        (
            (f"{a}^\\circ", f"{a}\\text{{ rad}}"), (f"{a}\\text{{ mph}}", f"{a}^\\circ"), ("2A_{16}", "2B_{16}"),
            ("-204_5", "-54"), (str(a), f"\\phantom{{{a}}}"), (str(b), f"\\boxed{{{a}}} and \\boxed{{{b}}}"),
            (str(a), f"\\underset{{{b}}}{{{a}}}"), ("\\frac{\\pi}{2}", "\\frac{\\pi}{2}^\\circ"),
            (f"{a} (liters)", f"{a} (minutes)"), (f"{a}\\text{{ cm}}", f"{a}\\text{{ cm or m}}"),
            (f"{a}\\text{{ kg}}", f"{a}\\text{{ g}}"), (f"\\${a}", f"{a} euros"), (f"{a}\\%", f"{a}"),
        )
    )  # fmt: skip
    return Hack("marks", gold, answer)


def _beyond(chance: Random) -> Hack:
    a, far = chance.randint(2, 19), chance.randint(100, 900)
    gold, answer = chance.choice(
        (
            (f"\\sqrt{{{_square_free(a)}}}", f"\\sqrt{{{_square_free(a)}}}+10^{{-{far}}}"), ("\\pi",
            f"\\pi+e^{{-{far}}}"),
            (f"10^{{{far}}}", f"\\sqrt{{10^{{{2 * far}}}+1}}"), (f"10^{{{a}}}-x", f"|x-10^{{{a}}}|"), ("x",
            f"\\max(x,-10^{{{a}}})"),
            ("x", f"x+\\lfloor \\frac{{|x|}}{{10^{{{a}}}}} \\rfloor"), ("1", f"\\tanh({far})"),
            (str(a), f"{a}+10^{{-{far}}}"),
            ("x^2", f"x^2+e^{{-{far}}}"), (str(a), f"{a}\\sim{a + 1}"), ("u_x=0", "u_y=0"), ("Yes",
            "Yes, or perhaps not"),
            ("[0,\\infty)", f"[{a},\\infty), [0,\\infty)"), (f"2^{{{far}}}", f"2^{{{far}}}+1"),
        )
    )  # fmt: skip
    return Hack("beyond", gold, answer)


def _several(chance: Random) -> Hack:
    a, b, c = chance.sample(range(2, 60), 3)
    answer = chance.choice(
        (f"{a}, {b}", f"{a} or {b}", f"\\{{{a},{b}\\}}", f"{a};{b}", f"{a} \\text{{ or }} {b}", f"({a},{b})",
        f"[{a},{b}]",
         f"{a}\\pm{c}", f"{a}={b}", f"{a}\\ne{b}", f"{a}..{b}", f"{a}-{b}", f"\\le {max(a, b)}", f"{a}/{b}",
         f"\\approx {a + 1}",
         f"{a} {b}", "x", "?", "\\square", f"{a}k", f"at least {a}", f"not {a}")
    )  # fmt: skip
    return Hack("several", str(a), answer)


CAUSES: Mapping[str, Callable[[Random], Hack]] = MappingProxyType(
    {
        "echo": _echo,
        "digits": _digits,
        "thousands": _thousands,
        "applied": _applied,
        "renamed": _renamed,
        "window": _window,
        "changed": _changed,
        "unsolved": _unsolved,
        "uncomputed": _uncomputed,
        "modulus": _modulus,
        "letters": _letters,
        "condition": _condition,
        "marks": _marks,
        "beyond": _beyond,
        "several": _several,
    }
)
"""Functions that draw a hack, by the name of its cause."""

"""Names that the reader knows: functions, relations, accents, environments, and which runs of letters are words."""

from __future__ import annotations

import re


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTIONS = {
    name: name
    for name in _names(
        """sin cos tan cot sec csc sinh cosh tanh coth sech csch asin acos atan acot asec acsc asinh acosh atanh ln log
        lg exp sgn gcd lcm det arg abs floor ceil Re Im dim ker rank tr Var Cov adj span"""
    )
} | {
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arccot": "acot",
    "arcsec": "asec",
    "arccsc": "acsc",
    "arctg": "atan",
    "tg": "tan",
    "ctg": "cot",
    "cotg": "cot",
    "cosec": "csc",
    "sh": "sinh",
    "ch": "cosh",
    "th": "tanh",
    "arsinh": "asinh",
    "arcosh": "acosh",
    "artanh": "atanh",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "sign": "sgn",
    "ceiling": "ceil",
    "Tr": "tr",
}
"""Every spelling of a function, with the name that the tree uses."""

BRACKETED_FUNCTIONS = _names("sh ch th tr Re Im dim ker rank abs floor ceil span adj det arg lg tg Tr")
"""Spellings that, as bare letters, are functions only before a bracket; otherwise they are products or words."""

CONSTANTS = {"pi": "pi", "infty": "oo", "inf": "oo", "infinity": "oo", "oo": "oo"}
"""Constants that are often written without a backslash."""

GREEK = _names(
    """alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau upsilon phi chi psi omega
    Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell hbar nabla partial aleph wp mho imath jmath"""
)

BIG = {"sum": "sum", "prod": "prod", "int": "int", "iint": "int", "oint": "int", "lim": "lim", "coprod": "prod"}

RELATIONS = {
    "le": "<=",
    "ge": ">=",
    "ne": "!=",
    "in": "in",
    "notin": "notin",
    "ni": "ni",
    "approx": "~",
    "sim": "~",
    "simeq": "~",
    "cong": "~",
    "doteq": "~",
    "equiv": "equiv",
    "to": "->",
    "mapsto": "->",
    "subset": "subset",
    "subseteq": "subset",
    "propto": "propto",
    "parallel": "parallel",
    "perp": "perp",
    "Rightarrow": "=>",
    "implies": "=>",
    "iff": "iff",
    "Leftrightarrow": "iff",
}

SET_OPERATIONS = {"cup": "union", "cap": "inter", "setminus": "diff", "bigcup": "union"}

NUMBER_SETS = _names("R Z N Q C")

ACCENTS = _names(
    """overline bar vec hat tilde widehat widetilde dot ddot overrightarrow underline boldsymbol pmb mathcal mathscr
    mathfrak check breve acute grave overleftrightarrow overset underset"""
)
"""Commands that put an accent on a letter; the accent becomes part of the variable's name."""

PLAIN_ACCENTS = _names("boldsymbol pmb mathcal mathscr mathfrak underline")
"""Those of ``ACCENTS`` that change only the typeface."""

TEXT_COMMANDS = _names(
    """text textbf textit textrm textsf texttt textnormal textup emph mbox hbox mathrm mathbf mathit mathsf mathtt
    operatorname mathop mathbin mathrel mathord phantom unit"""
)

MATRIX_ENVIRONMENTS = _names("matrix pmatrix bmatrix vmatrix Vmatrix Bmatrix smallmatrix array")

LAYOUT_ENVIRONMENTS = _names(
    "align aligned gathered gather split equation cases center displaymath eqnarray multline math"
)

WORDS = _names(
    """a an and any all are as at be but by can do does each even every exist exists false feet foot for from has have
    if inch is isn it its least max min most my neither never no none nor not odd of off on one only or other our out
    over per so some such sum than that the then there they this those three to true two up undefined us was we when
    where which with yes you yuan am pm cm mm km kg mg ft mi yd lb lbs oz hr hrs mph kph mins gal usd eur dne ml kw
    kwh rpm sq cu unit units cent cents red acute right zero four five six seven eight nine ten pct big men man day
    days hour hours now let say car cat dog boy boys girl sun mon tue wed thu fri sat"""
)
"""Short runs of letters that are words, not products of variables."""

PERCENT_WORDS = frozenset({"percent", "per cent", "pct", "percentage", "percents"})

VERBS = _names("is are equals equal was be to")
"""Words that a value follows, as in "the area is 5"."""

FILLERS = _names("only just exactly approximately about approx roughly answer final value total")
"""Words before a value that do not change it."""

CONDITION_STARTS = _names("for where with if when such as provided unless on over")
"""Words that begin a condition or remark after an answer."""

UNIT_STOPS = CONDITION_STARTS | _names("is are at then not")
"""Words that cannot begin a unit."""

_SHORT_FUNCTION = re.compile(r"(sin|cos|tan|cot|ln|log|exp|sqrt|pi)([a-zA-Z]{0,2})")
_VOWELS = frozenset("aeiouyAEIOUY")


def short_function(run: str) -> tuple[str, str] | None:
    """Split ``sinx`` into a function and the one or two letters after it."""
    match = _SHORT_FUNCTION.fullmatch(run)
    return (match[1], match[2]) if match else None


def is_word(run: str) -> bool:
    r"""Whether a run of letters outside of ``\\text`` reads as a word rather than as a product of variables."""
    if run.lower() in WORDS:
        return True
    if len(run) < 4 or run.isupper() or run in GREEK or short_function(run) is not None:
        return False
    return any(char in _VOWELS for char in run)

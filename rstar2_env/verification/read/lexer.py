r"""Splits a cleaned text into tokens, and moves a cursor through them.

Covered: LaTeX and plain notation in one text; dollars separate formulas from prose. Not covered: how tokens combine
(``parser``). The time is linear in the length of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from rstar2_env.verification.read import names, units, vocabulary
from rstar2_env.verification.read.boxed import closing_braces


class ReadError(Exception):
    """The text is in a notation that this package cannot parse."""


@dataclass(slots=True)
class Token:
    """A token of an answer's text.

    Attributes:
        kind: Kind of the token, one of num, let, const, fn, op, open, close, bar, sep, rel, set, text, amp, row, begin,
            end, big, cmd, deg, pct, pmod, money, dots, colon, mid, accent, minmax, prime, stop, skip.
        text: The token's text, or the name that the tree uses for it.
        spaced: Whether white space came before the token.
    """

    kind: str
    text: str
    spaced: bool = False


_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<num>\d+(?:\.\d+)?|\.\d+)
    |\\(?P<cmd>[a-zA-Z]+)\*?
    |\\(?P<escaped>.)
    |(?P<run>(?:[^\W\d_]|[\u0300-\u036f\u0900-\u0d7f\u0e31-\u0e4e])+)
    |(?P<rel><=|>=|!=|==|<>|->|[=<>])
    |(?P<op>\*\*|[-+*/^_!])
    |(?P<open>[(\[{])
    |(?P<close>[)\]}])
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_RESPELLED = {"==": "=", "<>": "!=", "**": "^"}
_ESCAPED = {
    **{"{": ("open", "\\{"), "}": ("close", "\\}"), "%": ("pct", "%"), "\\": ("row", "\\\\"), "|": ("bar", "||")},
    **{char: ("text", char) for char in "&_#"},
}
"""Maps a character after a backslash to the kind and the text of the token that the two form."""

_OTHER = {char: kind for kind, chars in {"sep": ",;", "money": "€£¥₹¢", "stop": '."`'}.items() for char in chars} | {
    "|": "bar", ":": "colon", "&": "amp", "'": "prime", "%": "pct"
}  # fmt: skip
"""Maps a single character to the kind of its token. A ``stop`` ends a sentence or quotes a word."""

_NUMERIC_TEXT = re.compile(r"[-+\d.,/^*()\s%]*\d[-+\d.,/^*()\s%]*")
_LETTER_LIST = re.compile(r"([A-Z](?:\s*(?:,|&|,?\s*and\s)\s*[A-Z])+)(?:\s+only)?")
_JOINING_TEXT = re.compile(r"[,;]?\s*(and|or|&|as well as)\s*[,;]?", re.IGNORECASE)
_JOINED_TEXT = re.compile(r"(?:(and|or)\s+)?(.*?)(?:[,;]?\s+(and|or))?", re.IGNORECASE | re.DOTALL)
_RUN = re.compile(r"[^\W\d_]+")
_NEXT_WORD = re.compile(r" ([a-z]+)\b")
_RATE = re.compile(r"[a-zA-Z]+/[a-zA-Z]{2,}")
_PROSE = re.compile(r"\s*[^\W\d_]{2,}(?:(?:,|,? (?:and|or))? [^\W\d_]{2,})*\s*")
_SHORT_WORD = re.compile(
    r"(?<![A-Za-z\\_])(?!(?:sin|cos|tan|cot|sec|csc|ln|log|lg|exp|gcd|lcm|max|min|det|and|or|pi)(?![a-z]))[A-Za-z][a-z]{1,2}(?![A-Za-z])"
)
_closings = lru_cache(maxsize=8)(closing_braces)
_LAST_LATIN = "\u02ff"
UNIT_LETTERS = frozenset("mgstNJWVAKTLhCFHld")
"""Letters that are units if they follow a value."""


def lex(text: str, *, letters: bool = False) -> list[Token]:
    """Split a text that :func:`~rstar2_env.verification.read.clean.clean` has cleaned.

    Args:
        text: The text.
        letters: Whether short runs of small letters are variables even if they look like words or units ("mg/k",
            "at^2").

    Raises:
        ReadError: A group does not close, or a character cannot occur in an answer.
    """
    text = _money(text)
    if letters:
        text = _SHORT_WORD.sub(lambda match: " ".join(match[0]) + " ", text)
    tokens: list[Token] = []
    # Between dollars, plain braces are TeX's grouping; elsewhere they mean a set.
    if text[:1] == "$" == text[-1:] and text.count("$") == 2 and text[1:2] == "{" and text[-2] == "}":
        text = text[2:-2] if _closings(text).get(1) == len(text) - 2 else text
    parts = text.split("$") if "$" in text else [text]
    for index, part in enumerate(parts):
        # In a text that uses $...$, letters outside of it are prose.
        _lex_part(part, tokens, prose=index % 2 == 0 if len(parts) > 1 else _is_prose(part))
    return tokens


def _is_prose(text: str) -> bool:
    """Whether a text consists only of words, so that a short one ("New York") is not a product of variables."""
    runs = [run for run in _RUN.findall(text) if run.lower() not in ("and", "or")]
    in_formula = any({run, run.lower()} & _IN_FORMULAS for run in runs)
    if len(runs) < 2 or in_formula or _PROSE.fullmatch(text) is None or units.read_unit(runs[-1]) is not None:
        return False
    return any(names.is_word(run) or (len(run) > 2 and run.istitle()) for run in runs)


def _money(text: str) -> str:
    r"""Write currency signs as ``\USD`` and drop unpaired dollars, so that the remaining ``$`` delimit formulas."""
    text = text.replace("\\$", "\\USD ")
    if text.count("$") % 2:
        text = re.sub(r"\$(?=\s*\.?\d)", r"\\USD ", text, count=1)
    return text.replace("$", " ") if text.count("$") % 2 else text


def _lex_part(text: str, tokens: list[Token], *, prose: bool) -> None:
    at = 0
    spaced = bool(tokens)
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None  # the last branch matches any character
        kind = match.lastgroup
        value = match[kind] if kind else ""
        at = match.end()
        if kind == "space":
            spaced = True
            continue
        if kind == "cmd":
            at = _command(value, text, at, tokens, spaced)
        elif kind == "escaped":
            if value in _ESCAPED:
                tokens.append(Token(*_ESCAPED[value], spaced))
            elif value not in " '`\"^":
                raise ReadError(f"cannot read \\{value}")
        elif spaced and (rate := _rate(text, match.start(), tokens)) is not None:
            tokens.append(Token("text", rate, spaced))
            at = match.start() + len(rate)
        elif kind == "run":
            bracket = text[at : at + 1] in ("(", "{")
            verb = _NEXT_WORD.match(text, at)
            subject = len(value) > 1 and verb is not None and vocabulary.direction(verb[1]) != 0  # "He" in "He lost 8"
            before = tokens[-1] if tokens else None
            tokens += _run(value, before, spaced=spaced, bracket=bracket, prose=prose or subject)
        elif kind == "other":
            if value not in _OTHER:
                raise ReadError(f"cannot read {value!r}")
            tokens.append(Token(_OTHER[value], value, spaced))
        else:
            tokens.append(Token(kind or "", _RESPELLED.get(value, value), spaced))
        spaced = False


def _rate(text: str, at: int, tokens: list[Token]) -> str | None:
    """Return a unit such as ``g/cm`` that begins at ``at`` after a number; ``None`` if there is none."""
    match = _RATE.match(text, at) if tokens and tokens[-1].kind == "num" else None
    return match[0] if match is not None and units.read_unit(match[0]) is not None else None


def _command(name: str, text: str, at: int, tokens: list[Token], spaced: bool) -> int:
    """Append the tokens of a LaTeX command whose name ends at ``at``; return where it ends."""
    if name not in names.TEXT_COMMANDS | {"begin", "end", "mathbb"}:
        tokens.append(Token(*names.COMMANDS.get(name, ("let", f"\\{name}")), spaced))
        return at
    content, end = _group(text, at)
    inner = content.strip()
    if name in names.TEXT_COMMANDS:
        _text_group(content, name, tokens, spaced)
    elif name == "mathbb":
        tokens.append(
            Token("const", inner, spaced) if inner in names.NUMBER_SETS else Token("let", f"bb{inner}", spaced)
        )
    else:
        tokens.append(Token(name, inner.rstrip("*"), spaced))
    return end


def _group(text: str, at: int) -> tuple[str, int]:
    """Return the content of the brace group at ``at`` (or the single character there), and the end of the group."""
    while at < len(text) and text[at] == " ":
        at += 1
    if at >= len(text):
        raise ReadError("the last LaTeX command has no argument")
    if text[at] != "{":
        return text[at], at + 1
    if (end := _closings(text).get(at)) is None:
        raise ReadError("a brace is not closed")
    return text[at + 1 : end], end + 1


def _text_group(content: str, command: str, tokens: list[Token], spaced: bool) -> None:
    r"""Append the tokens of ``\text{…}`` or a similar group: a symbol, number, function, joining word, or words."""
    inner = content.replace("~", " ").strip()
    if not inner:
        return
    counted = inner[0].isdigit() and inner[-1].isalpha() and (" " in inner or not inner.isascii())
    if "$" in inner or counted:
        for index, part in enumerate(inner.split("$")):
            _lex_part(part, tokens, prose=index % 2 == 0)
    elif inner[-1] in ":=" and inner[0].isalpha():
        tokens += [Token("text", inner[:-1].strip(), spaced), Token("colon", ":")]
    elif (joining := _JOINING_TEXT.fullmatch(inner)) is not None:
        tokens.append(Token("sep", joining[1].lower(), spaced))
    elif inner in names.FUNCTIONS:
        tokens.append(Token("fn", names.FUNCTIONS[inner], spaced))
    elif inner in ("max", "min") and not _ends_value(tokens):
        tokens.append(Token("minmax", inner, spaced))
    elif (_NUMERIC_TEXT.fullmatch(inner) or _LETTER_LIST.fullmatch(inner)) or "\\" in inner or "{" in inner:
        _lex_part(inner.removesuffix("only"), tokens, prose=False)
    elif len(inner) == 1 and inner.isalpha() and inner <= _LAST_LATIN:
        unit = inner in UNIT_LETTERS and _ends_value(tokens) and command != "mathbf"
        tokens.append(Token("text" if unit or content[:1] == "~" else "let", inner, spaced))
    elif command == "mathbf" or (command == "mathrm" and len(inner) == 2 and inner.isupper()):
        for char in inner:
            if char.isalpha():
                tokens.append(Token("let", char, spaced))
            else:
                _lex_part(char, tokens, prose=False)
    else:
        # "stuffed goats and" ends one item and begins another.
        match = _JOINED_TEXT.fullmatch(inner)
        before, words, after = match.groups() if match else (None, inner, None)
        if before:
            tokens.append(Token("sep", before.lower(), spaced))
        tokens.append(Token("text", words, spaced))
        if after:
            tokens.append(Token("sep", after.lower(), True))


_OPENERS = names.CONDITION_STARTS | names.VERBS | names.FILLERS
"""Words that come before a value; letters after such a word are a variable, unless they are a known word."""
_IN_FORMULAS = _OPENERS | names.FUNCTIONS.keys() | names.CONSTANTS.keys() | names.GREEK | {"max", "min"}
"""Words that may belong to a formula; a text with such a word is not read as prose."""


def _is_unit_word(value: str, before: Token) -> bool:
    """Whether a run of letters is text: the next of several words, or a unit or counted noun after a number."""
    if value.lower() in ("and", "or") or value in names.FUNCTIONS:
        return False
    if before.kind == "text" and before.text.split()[-1].lower() not in _OPENERS:
        return True
    named = value[0].isupper() and (value[-1] == "s" or value[1:].islower())
    counted = named or units.read_unit(value) is not None or (len(value) > 2 and vocabulary.names_things(value))
    return counted if before.kind == "num" else before.kind == "text" and vocabulary.names_things(value)


def _ends_value(tokens: list[Token]) -> bool:
    return bool(tokens) and tokens[-1].kind in ("num", "close", "const", "deg")


def _run(value: str, before: Token | None, *, spaced: bool, bracket: bool, prose: bool) -> list[Token]:
    """Read a run of letters outside of any command.

    Args:
        value: The letters.
        before: The token before them, if any.
        spaced: Whether white space came before them.
        bracket: Whether an opening bracket comes right after them.
        prose: Whether they stand outside ``$...$``, in a text that uses ``$...$``.
    """
    lower = value.lower()
    if max(value) > _LAST_LATIN and value not in names.GREEK:  # another script: words, or a word between two values
        joint = names.JOINTS.get(value)
        return [Token("sep", joint, spaced) if joint else Token("text", value, spaced)]
    if before is not None and spaced and len(value) > 1 and _is_unit_word(value, before):
        return [Token("text", value, spaced)]
    if lower in ("and", "or"):
        return [Token("sep", lower, spaced)]
    if value in names.BARE_COMMANDS and (bracket or value not in names.BRACKETED_FUNCTIONS):
        return [Token(*names.COMMANDS[value], spaced)]
    if lower in names.CONSTANTS and not prose:
        return [Token("const", names.CONSTANTS[lower], spaced)]
    if len(value) == 1 and not (prose and lower in "ai" and not bracket):
        return [Token("let", value, spaced)]
    if prose or names.is_word(value) or not value.isascii():
        return [Token("text", value, spaced)]
    if value in names.GREEK:
        return [Token("let", value, spaced)]
    if (short := names.short_function(value)) is not None:
        head, rest = short
        return [Token(*names.COMMANDS[head], spaced), *(Token("let", char) for char in rest)]
    return [Token("let", char, spaced and index == 0) for index, char in enumerate(value)]


END = Token("", "")
"""The token that marks the end of the text."""

_STARTS = names.word_set("num let const fn open cmd big accent minmax money begin dots bar")


class Cursor:
    """A position in a sequence of tokens, with the bars, matrix rows and integrals that are open there.

    Args:
        tokens: The lexer's tokens.
        tight_division: Whether ``1/2x`` means ``1/(2x)``; see ``parser.read``.
    """

    def __init__(self, tokens: list[Token], *, tight_division: bool) -> None:
        self.tokens = [*_without_stops(tokens), END, END, END]
        self.at = 0
        self.tight_division = tight_division
        self.open_bars = 0
        self.rows = 0
        self.no_colon = False
        self.no_mid = False
        self.integral = False

    def peek(self, ahead: int = 0) -> Token:
        """Return the next token, or the one ``ahead`` (at most two) places after it; ``END`` after the last token."""
        return self.tokens[self.at + ahead]

    def is_next(self, kind: str, *texts: str, ahead: int = 0) -> bool:
        """Return whether a token is of the kind ``kind`` and, if ``texts`` are given, has one of them.

        Args:
            kind: The kind of token.
            *texts: Allowed texts of the token; none allows every text.
            ahead: 0 for the next token, 1 for the token after it.
        """
        token = self.tokens[self.at + ahead]
        return token.kind == kind and (not texts or token.text in texts)

    def take(self, kind: str, *texts: str) -> Token | None:
        """Consume and return the next token if ``is_next`` holds for it; otherwise return ``None``."""
        return self.next() if self.is_next(kind, *texts) else None

    def next(self) -> Token:
        """Consume and return the next token.

        Raises:
            ReadError: No token is left.
        """
        token = self.peek()
        if token is END:
            raise ReadError("the answer ends too early")
        self.at += 1
        return token

    def close(self, closers: tuple[str, ...]) -> str:
        """Consume and return the closing bracket that must come next.

        Raises:
            ReadError: The next token is not one of ``closers``.
        """
        token = self.next()
        if token.text not in closers:
            raise ReadError(f"expected {' or '.join(closers)}, found {token.text!r}")
        return token.text

    def raw_script(self) -> str:
        """Consume a subscript and return it as text, without spaces and braces."""
        token = self.next()
        if token.kind != "open":
            return token.text
        depth, parts = 1, []
        while depth:
            inner = self.next()
            depth += {"open": 1, "close": -1}.get(inner.kind, 0)
            if inner.kind not in ("open", "close"):
                parts.append(inner.text)
        return "".join(parts)

    def starts_factor(self) -> bool:
        """Return whether the next token can begin a factor, which multiplies the factor before it."""
        token = self.peek()
        if token.kind not in _STARTS:
            return False
        if token.kind == "bar":
            return self.open_bars == 0 and not self.no_mid
        if token.kind == "num":
            # "3 4" is not a product; "x 2" and "(1) 2" are.
            return self.at == 0 or self.tokens[self.at - 1].kind != "num"
        return not (self.integral and self.at_differential())

    def at_differential(self) -> bool:
        """Return whether the next tokens are the differential of an integral, such as ``dx``."""
        return self.is_next("let", "d") and self.is_next("let", ahead=1)


def _without_stops(tokens: list[Token]) -> list[Token]:
    """Drop punctuation that ends a sentence or quotes a word; punctuation inside an answer makes it prose."""
    kept: list[Token] = []
    for index, token in enumerate(tokens):
        if token.kind == "stop":
            after = tokens[index + 1].kind if index + 1 < len(tokens) else "end"
            if token.text not in "\"`'" and after not in ("stop", "close", "sep", "end", "row"):
                raise ReadError("the answer has several sentences")
        elif token.kind != "skip":
            kept.append(token)
    return kept

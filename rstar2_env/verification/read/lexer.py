r"""Split a cleaned text into tokens.

Covered: LaTeX and plain notation side by side; ``$…$`` separates prose from formulas if a text has any. Not covered:
how tokens combine (see ``parser``). Linear in the length of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rstar2_env.verification.read import names, units


class ReadError(Exception):
    """The text is not in a notation that the reader supports."""


@dataclass(slots=True)
class Token:
    """A token: its kind, its text, and whether white space came before it.

    Kinds: num, let, const, fn, op, open, close, bar, sep, rel, set, text, amp, row, begin, end, big, cmd, deg, pct,
    money, dots, colon, mid, accent, prime.
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
_RELATION_TEXT = {"<=": "<=", ">=": ">=", "!=": "!=", "==": "=", "<>": "!=", "->": "->", "=": "=", "<": "<", ">": ">"}
_NUMERIC_TEXT = re.compile(r"[-+\d.,/^*()\s%]*\d[-+\d.,/^*()\s%]*")
_LETTER_LIST = re.compile(r"([A-Z](?:\s*(?:,|&|,?\s*and\s)\s*[A-Z])+)(?:\s+only)?")
_JOINING_TEXT = re.compile(r"[,;]?\s*(and|or|&|as well as)\s*[,;]?", re.IGNORECASE)
_JOINED_TEXT = re.compile(r"(?:(and|or)\s+)?(.*?)(?:[,;]?\s+(and|or))?", re.IGNORECASE | re.DOTALL)
_SHORT_WORD = re.compile(
    r"(?<![A-Za-z\\_])(?!(?:sin|cos|tan|cot|sec|csc|ln|log|lg|exp|gcd|lcm|max|min|det|and|or|pi)(?![a-z]))[A-Za-z][a-z]{1,2}(?![A-Za-z])"
)
_ORDINALS = frozenset({"st", "nd", "rd", "th"})
_LAST_LATIN = "\u02ff"
_UNIT_LETTERS = frozenset("mgsNJWVAKTLhCFHlCd")


def lex(text: str, *, letters: bool = False) -> list[Token]:
    """Split a text that :func:`~rstar2_env.verification.read.clean.clean` has cleaned.

    Args:
        text: The text.
        letters: Read short runs of small letters as variables, even where they are words or units ("mg/k", "at^2").

    Raises:
        ReadError: A group does not close, or a character cannot occur in an answer.
    """
    text = _money(text)
    if letters:
        text = _SHORT_WORD.sub(lambda match: " ".join(match[0]) + " ", text)
    tokens: list[Token] = []
    # Between dollars, plain braces are TeX's grouping; elsewhere they mean a set.
    if text[:1] == "$" == text[-1:] and text.count("$") == 2 and text[1:2] == "{" and text[-2] == "}":
        text = f"{text[2:-2]}" if _is_one_group(text[1:-1]) else text
    parts = text.split("$") if "$" in text else [text]
    for index, part in enumerate(parts):
        # In a text with dollars, letters outside of them are prose.
        _lex_part(part, tokens, prose=len(parts) > 1 and index % 2 == 0)
    return tokens


def _is_one_group(text: str) -> bool:
    """Whether the first brace closes with the last character."""
    try:
        return _group(text, 0)[1] == len(text)
    except ReadError:
        return False


def _money(text: str) -> str:
    r"""Write the currency sign as ``\USD`` and drop stray dollars, so that every ``$`` left is half of a pair."""
    text = text.replace("\\$", "\\USD ")
    if text.count("$") % 2:
        text = re.sub(r"\$(?=\s*\.?\d)", r"\\USD ", text, count=1)
    if text.count("$") % 2:
        text = text.replace("$", " ")
    return text


def _lex_part(text: str, tokens: list[Token], *, prose: bool) -> None:
    at = 0
    spaced = bool(tokens)
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:  # the last branch matches any character
            raise ReadError(f"cannot read {text[at]!r}")
        kind = match.lastgroup
        value = match[kind] if kind else ""
        at = match.end()
        if kind == "space":
            spaced = True
            continue
        if kind == "cmd":
            at = _command(value, text, at, tokens, spaced)
        elif kind == "escaped":
            _escaped(value, tokens, spaced)
        elif kind == "run":
            _run(value, text, at, tokens, spaced, prose)
        elif kind == "rel":
            tokens.append(Token("rel", _RELATION_TEXT[value], spaced))
        elif kind == "op":
            tokens.append(Token("op", "^" if value == "**" else value, spaced))
        elif kind == "other":
            _other(value, tokens, spaced)
        else:
            tokens.append(Token(kind or "", value, spaced))
        spaced = False


def _escaped(value: str, tokens: list[Token], spaced: bool) -> None:
    if value in "{}":
        tokens.append(Token("open" if value == "{" else "close", "\\" + value, spaced))
    elif value == "%":
        tokens.append(Token("pct", "%", spaced))
    elif value == "\\":
        tokens.append(Token("row", "\\\\", spaced))
    elif value == "|":
        tokens.append(Token("bar", "||", spaced))
    elif value in "&_#":
        tokens.append(Token("text", value, spaced))
    elif value not in " '`\"^":
        raise ReadError(f"cannot read \\{value}")


def _other(value: str, tokens: list[Token], spaced: bool) -> None:
    if value in ",;":
        tokens.append(Token("sep", value, spaced))
    elif value == "|":
        tokens.append(Token("bar", "|", spaced))
    elif value == ":":
        tokens.append(Token("colon", ":", spaced))
    elif value == "&":
        tokens.append(Token("amp", "&", spaced))
    elif value == "'":
        tokens.append(Token("prime", "'", spaced))
    elif value == "%":
        tokens.append(Token("pct", "%", spaced))
    elif value in "€£¥₹¢":
        tokens.append(Token("money", value, spaced))
    elif value in '.?"`':
        # Punctuation: the end of a sentence, or quotes around a word.
        tokens.append(Token("stop", value, spaced))
    else:
        raise ReadError(f"cannot read {value!r}")


def _command(name: str, text: str, at: int, tokens: list[Token], spaced: bool) -> int:
    """Read one LaTeX command whose name ends at ``at``; return where it ends with its text group, if it takes one."""
    if name in names.TEXT_COMMANDS:
        content, end = _group(text, at)
        _text_group(content, name, tokens, spaced)
        return end
    if name in ("begin", "end"):
        environment, end = _group(text, at)
        environment = environment.strip().rstrip("*")
        if name == "begin" and environment == "array" and (spec := re.match(r"\s*\{[^{}]*\}", text[end:])):
            end += spec.end()
        tokens.append(Token(name, environment, spaced))
        return end
    if name == "mathbb":
        content, end = _group(text, at)
        known = content.strip() if content.strip() in names.NUMBER_SETS else None
        tokens.append(Token("const", known, spaced) if known else Token("let", f"bb{content.strip()}", spaced))
        return end
    if name in ("boxed", "fbox"):
        return at  # its braces are an ordinary group
    tokens.append(_command_token(name, spaced))
    return at


def _command_token(name: str, spaced: bool) -> Token:
    if name in names.FUNCTIONS:
        return Token("fn", names.FUNCTIONS[name], spaced)
    if name in names.RELATIONS:
        return Token("rel", names.RELATIONS[name], spaced)
    if name in names.BIG:
        return Token("big", names.BIG[name], spaced)
    if name in names.SET_OPERATIONS:
        return Token("set", names.SET_OPERATIONS[name], spaced)
    if name in names.ACCENTS:
        return Token("accent", name, spaced)
    simple = _SIMPLE_COMMANDS.get(name)
    if simple is not None:
        return Token(*simple, spaced)
    if name in names.GREEK:
        return Token("let", name, spaced)
    return Token("let", f"\\{name}", spaced)  # an unknown name is a name


_SIMPLE_COMMANDS = {
    "frac": ("cmd", "frac"),
    "sqrt": ("cmd", "sqrt"), "binom": ("cmd", "binom"), "dbinom": ("cmd", "binom"), "tbinom": ("cmd", "binom"),
    "cdot": ("op", "*"), "times": ("op", "*"), "ast": ("op", "*"), "bullet": ("op", "*"), "pm": ("op", "pm"),
    "mp": ("op", "mp"), "bmod": ("op", "mod"), "mod": ("op", "mod"), "pmod": ("pmod", "mod"), "pi": ("const", "pi"),
    "infty": ("const", "oo"), "emptyset": ("const", "empty"), "ldots": ("dots", "..."), "mid": ("mid", "|"),
    "circ": ("deg", "deg"), "langle": ("open", "<"), "rangle": ("close", ">"), "lfloor": ("open", "floor"),
    "rfloor": ("close", "floor"), "lceil": ("open", "ceil"), "rceil": ("close", "ceil"), "USD": ("money", "$"),
    "pounds": ("money", "£"), "euro": ("money", "€"), "Vert": ("bar", "||"), "lVert": ("bar", "||"),
    "rVert": ("bar", "||"), "angle": ("accent", "angle"), "triangle": ("accent", "triangle"), "max": ("minmax", "max"),
    "min": ("minmax", "min"), "sup": ("minmax", "sup"), "inf": ("minmax", "inf"), "forall": ("text", "for all"),
    "exists": ("text", "exists"), "lnot": ("text", "not"), "wedge": ("op", "wedge"), "vee": ("sep", "or"),
    "lor": ("sep", "or"), "qed": ("stop", "."), "checkmark": ("text", "yes"), "left": ("skip", ""),
    "big": ("skip", ""), "Pr": ("let", "P"), "I": ("let", "I"), "oplus": ("op", "oplus"), "otimes": ("op", "otimes"),
}  # fmt: skip


def _group(text: str, at: int) -> tuple[str, int]:
    """The content of the brace group at ``at``, or the one character there, and where it ends."""
    while at < len(text) and text[at] == " ":
        at += 1
    if at >= len(text):
        raise ReadError("a command at the end of the text")
    if text[at] != "{":
        return text[at], at + 1
    depth = 0
    for match in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, at):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return text[at + 1 : match.start()], match.end()
    raise ReadError("a group that does not close")


def _text_group(content: str, command: str, tokens: list[Token], spaced: bool) -> None:
    r"""Read the content of ``\text{…}`` and the like: a symbol, a number, a function, a joining word, or words."""
    inner = content.replace("~", " ").strip()
    if not inner:
        return
    if "$" in inner:
        for index, part in enumerate(inner.split("$")):
            _lex_part(part, tokens, prose=index % 2 == 0)
        return
    if inner[0].isdigit() and inner[-1].isalpha() and (" " in inner or not inner.isascii()):
        _lex_part(inner, tokens, prose=True)
        return
    if inner[-1] in ":=" and inner[0].isalpha():
        tokens += [Token("text", inner[:-1].strip(), spaced), Token("colon", ":")]
        return
    joining = _JOINING_TEXT.fullmatch(inner)
    if joining is not None:
        tokens.append(Token("sep", joining[1].lower(), spaced))
    elif inner in names.FUNCTIONS:
        tokens.append(Token("fn", names.FUNCTIONS[inner], spaced))
    elif inner in ("max", "min") and not _ends_value(tokens):
        tokens.append(Token("minmax", inner, spaced))
    elif (_NUMERIC_TEXT.fullmatch(inner) or _LETTER_LIST.fullmatch(inner)) or "\\" in inner or "{" in inner:
        _lex_part(inner.removesuffix("only"), tokens, prose=False)
    elif len(inner) == 1 and inner.isalpha() and inner <= _LAST_LATIN:
        unit = inner in _UNIT_LETTERS and _ends_value(tokens) and command != "mathbf"
        tokens.append(Token("text" if unit or content[:1] == "~" else "let", inner, spaced))
    elif command == "mathbf" or (command == "mathrm" and len(inner) == 2 and inner.isupper()):
        for char in inner:
            tokens.append(Token("let", char, spaced)) if char.isalpha() else _lex_part(char, tokens, prose=False)
    else:
        # "stuffed goats and" ends one item and begins another.
        match = _JOINED_TEXT.fullmatch(inner)
        before, words, after = match.groups() if match else (None, inner, None)
        if before:
            tokens.append(Token("sep", before.lower(), spaced))
        tokens.append(Token("text", words, spaced))
        if after:
            tokens.append(Token("sep", after.lower(), True))


def _is_unit_word(value: str, before: Token) -> bool:
    """Whether a run of letters continues the words before it, or is a unit or a plural after a number."""
    if value.lower() in ("and", "or") or value in names.FUNCTIONS:
        return False
    if before.kind == "text":
        return before.text.split()[-1].lower() not in names.CONDITION_STARTS | names.VERBS | names.FILLERS
    named = value[0].isupper() and (value[-1] == "s" or value[1:].islower())
    return before.kind == "num" and (units.read_unit(value) is not None or named)


def _ends_value(tokens: list[Token]) -> bool:
    return bool(tokens) and tokens[-1].kind in ("num", "close", "const", "deg")


def _run(value: str, text: str, at: int, tokens: list[Token], spaced: bool, prose: bool) -> None:
    """Read a run of letters outside of any command."""
    lower = value.lower()
    if max(value) > _LAST_LATIN and value not in names.GREEK:  # another script: words, or a word between two values
        joint = names.JOINTS.get(value)
        tokens.append(Token("sep", joint, spaced) if joint else Token("text", value, spaced))
        return
    if spaced and tokens and len(value) > 1 and _is_unit_word(value, tokens[-1]):
        tokens.append(Token("text", value, spaced))
        return
    if lower in _ORDINALS and not spaced and tokens and tokens[-1].kind == "num":
        return  # "15th" is 15
    if value[:2] == "or" and len(value) == 3 and value[2].isupper() and tokens and tokens[-1].kind in ("num", "close"):
        tokens.append(Token("sep", "or", spaced))  # "W(x)=1orW(x)=-1"
        value = value[2]
    if lower in ("and", "or") and len(value) > 1:
        tokens.append(Token("sep", lower, spaced))
        return
    before_bracket = at < len(text) and text[at] in "({"
    if value == "sqrt":
        tokens.append(Token("cmd", "sqrt", spaced))
        return
    if value in names.FUNCTIONS and (before_bracket or value not in names.BRACKETED_FUNCTIONS):
        tokens.append(Token("fn", names.FUNCTIONS[value], spaced))
        return
    if value in ("max", "min") and before_bracket:
        tokens.append(Token("minmax", value, spaced))
        return
    if lower in names.CONSTANTS and not prose:
        tokens.append(Token("const", names.CONSTANTS[lower], spaced))
        return
    if len(value) == 1 and not (prose and lower in "ai" and not before_bracket):
        tokens.append(Token("let", value, spaced))
        return
    if prose or names.is_word(value):
        tokens.append(Token("text", value, spaced))
        return
    if value in names.GREEK:
        tokens.append(Token("let", value, spaced))
        return
    short = names.short_function(value)
    if short is not None:
        head, rest = short
        if head == "pi":
            tokens.append(Token("const", "pi", spaced))
        else:
            tokens.append(Token("cmd", "sqrt", spaced) if head == "sqrt" else Token("fn", head, spaced))
        tokens.extend(Token("let", char) for char in rest)
        return
    if not value.isascii():
        tokens.append(Token("text", value, spaced))
        return
    for index, char in enumerate(value):
        tokens.append(Token("let", char, spaced and index == 0))

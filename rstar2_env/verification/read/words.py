r"""Answers in words: converts them to a canonical spelling, and compares them.

Covered: case, punctuation, articles, ``\text{}``, a few common phrases with the same meaning ("no
solution", "does not exist", "all real numbers"), yes and no with an explanation. Not covered: paraphrase, which needs a
model judge (see ``model``).
"""

from __future__ import annotations

import re
from fractions import Fraction

from rstar2_env.verification.read.names import table, word_set

_TEXT_COMMAND = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox|operatorname|emph|mathit|textsc|quad|qquad)\b\*?"
)
_PUNCTUATION = re.compile(r"[.,;:!\"()\[\]`]+")
_LETTERS = re.compile(r"[^\W\d_]{2}")
_SPACE = re.compile(r"\s+")
_ARTICLES = frozenset({"the", "a", "an"})
_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_NUMBER_WORDS = {
    **{word: number for number, word in enumerate(_SMALL.split(" "))},
    **{word: 20 + 10 * number for number, word in enumerate(_TENS.split(" "))},
}


def _numbers(file: str) -> dict[str, int]:
    """Return the number for each name in a file; each line of the file has a number and its names."""
    return {name: int(number) for number, *names in map(str.split, table(file)) for name in names}


_NAMED = _numbers("numbers.txt")
_DENOMINATORS = _numbers("denominators.txt")
_NAMED |= {
    f"{one}und{ten}": _NAMED[one] + _NAMED[ten]
    for one in ["ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]
    for ten in ["zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"]
}
_HAN_DIGITS = {name: value for value, name in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_HAN = re.compile(f"[{''.join((*_HAN_DIGITS, *_HAN_UNITS))}]+")
_TEENS = "dix onze douze treize quatorze quinze seize dixsept dixhuit dixneuf"
_NAMED |= {
    f"{tens}{teen}": value + number
    for tens, value in (("soixante", 60), ("octante", 80))
    for number, teen in enumerate(_TEENS.split(" "), 10)
}
_COMPOUNDS = (
    (re.compile(r"\bdix[- ](sept|huit|neuf)\b"), r"dix\1"),
    (re.compile(r"\bquatre[- ]vingts?\b"), "octante"),
    (re.compile(rf"\b(soixante|octante)[- ](?:et[- ])?({_TEENS.replace(' ', '|')})\b"), r"\1\2"),
    (re.compile(r"(hundert|tausend)(?:und\b)?"), r" \1 "),
)
"""Patterns and replacements that turn French numbers from 70 to 99, and German ones above 99, into words that are keys
of ``_NAMED``."""
SCALES = _numbers("scales.txt")
"""Words that multiply the number before them, such as million."""

_MONTHS = "january february march april may june july august september october november december"
_CUT = re.compile(r"([a-z]{3})([a-z])([a-z]*)"), r"\1(?:\2(?:\3)?)?"
"""Pattern and replacement that turn a name, "september", into a pattern that also matches "sep" and "sept"."""
_MONTH = "(?P<name>" + re.sub(*_CUT, _MONTHS).replace(" ", "|") + r")\.?"
_DAYS = "sunday monday tuesday wednesday thursday friday saturday"
_DATE = re.compile(
    rf"{_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<year>\d{{4}}))?"
    r"|(?:the )?(?P<day2>\d{1,2})(?:st|nd|rd|th)? (?:of )?"
    rf"{_MONTH.replace('name', 'name2')}(?:,? (?P<year2>\d{{4}}))?"
    r"|(?P<year3>\d{4})[-/年](?P<month>\d{1,2})[-/月](?P<day3>\d{1,2})日?",
    re.IGNORECASE,
)


_WEEKDAY = re.compile("(?P<name>" + re.sub(*_CUT, _DAYS).replace(" ", "|") + r")\b\.?,? +", re.IGNORECASE)


def date(text: str) -> str | None:
    """Return a date ("Tuesday, March 5th", "5 March 2024") in canonical spelling; ``None`` for other texts."""
    plain = _without_commands(text).strip(" .")
    weekday = _WEEKDAY.match(plain)
    if (match := _DATE.fullmatch(plain, weekday.end() if weekday else 0)) is None:
        return None
    found = {name.rstrip("23"): value.lower() for name, value in match.groupdict().items() if value}
    month = int(found.get("month") or [name[:3] for name in _MONTHS.split()].index(found["name"][:3]) + 1)
    day = int(found["day"])
    said = weekday["name"][:3].lower() if weekday else ""
    if said and "year" in found and said == _day_of_week(int(found["year"]), month, day):
        said = ""  # the weekday agrees with the date and adds nothing
    return f"date {found.get('year', '')} month {month} day {day} {said}".strip()


def _day_of_week(year: int, month: int, day: int) -> str | None:
    """Return the weekday of a date, shortened to three letters ("mon"); ``None`` if there is no such date."""
    from datetime import date as calendar_date  # most answers do not need it

    try:
        return _DAYS.split(" ")[calendar_date(year, month, day).isoweekday() % 7][:3]
    except ValueError:
        return None


def _without_commands(text: str) -> str:
    r"""Return the text without the commands and braces of ``\text{}``."""
    return " ".join(_TEXT_COMMAND.sub(" ", text).replace("{", " ").replace("}", " ").split())


_CLOCK = re.compile(r"(?P<hour>\d{1,2})(?: ?: ?(?P<minute>[0-5]\d))?(?: ?(?P<half>[ap])\.? ?m\.?)?", re.IGNORECASE)
_HALF_DAY = re.compile(r" (?:in the (?:(?P<first>morning)|afternoon|evening)|at night)\Z", re.IGNORECASE)
_TWELVE = re.compile(r"12(?::00)? (noon|midday|midnight)", re.IGNORECASE)
_HOURS = {"noon": "12:00 pm", "midday": "12:00 pm", "midnight": "12:00 am"}


def clock(text: str) -> str | None:
    """Return a time of day ("3:45 PM", "15:45") in one standard spelling.

    Returns:
        The time; ``None`` for other texts, and for "3:45", which may be in the morning or in the afternoon.
    """
    plain = _HALF_DAY.sub(lambda match: " am" if match["first"] else " pm", _without_commands(text))
    plain = _TWELVE.sub(r"\1", plain)
    match = _CLOCK.fullmatch(_HOURS.get(plain.lower(), plain))
    if match is None or not (match["minute"] or match["half"]):
        return None
    hour, half = int(match["hour"]), (match["half"] or "").lower()
    if half and 1 <= hour <= 12:
        hour = hour % 12 + 12 * (half == "p")
    elif half or not (13 <= hour <= 23 or plain.startswith("0")):
        return None
    return f"clock {hour} minute {int(match['minute'] or 0)}"


_PHRASES = {
    phrase: meaning
    for meaning, phrases in {
        "#empty": "no solution; no solutions; no real solution; no real solutions; there is no solution; there are no "
        "solutions; no solution exists; no solutions exist; empty set; 无解; 無解; 解なし; kein lösung; keine "
        "lösung; sin solución; pas de solution; aucune solution; нет решений",
        "#undefined": "does not exist; dne; undefined; not defined; limit does not exist; do not exist",
        "#R": "all real numbers; all reals; any real number; all real",
        "#R+": "all positive real numbers; all positive reals; positive real numbers; positive reals",
        "#R-": "all negative real numbers; all negative reals; negative real numbers; negative reals",
        "#R0": "all nonnegative real numbers; all nonnegative reals; nonnegative real numbers; nonnegative reals; "
        "all non-negative real numbers; non-negative real numbers; non-negative reals",
        "#oo": "infinitely many; infinitely many solutions; infinite; infinity; infinite number; infinite number of "
        "solutions; infinite solutions",
        "converges": "converge; convergent",
        "diverges": "diverge; divergent",
        "#Z": "all integers; any integer; every integer; integers",
        "neither": "neither even nor odd; neither odd nor even",
    }.items()
    for phrase in phrases.split("; ")
}

_PHRASES |= {name[:3]: name for name in f"{_MONTHS} {_DAYS}".split() if name != "may"}
_MAX_NUMBER_WORDS = 12
_JOINTS = frozenset({"and", "a", "the", "y", "et", "und", "na"})
"""Words that may occur between the words of a number, such as "and"."""
_ORDINALS = {
    **{"first": "one", "second": "two", "third": "three", "fifth": "five", "eighth": "eight", "ninth": "nine"},
    **{"twelfth": "twelve", "half": "two", "halve": "two", "quarter": "four"},
}
"""The number for each ordinal or name of a fraction that is not formed by adding "th"."""
_NEGATIVE = re.compile(r"\s*(?:minus|negative|menos|moins|минус)\s+(?!minus|negative)(?=\w)", re.IGNORECASE)
_PARTS = re.compile(
    r"(?:(?P<whole>.+?) and )?(?P<top>[a-z-]+?)[ -](?P<bottom>(?:[a-z]+ty-)?(?:half|halve|quarter|third|[a-z]+th)s?)",
    re.IGNORECASE,
)
_NOUNS = word_set("function triangle number sequence series matrix graph curve lines planes")
_GENERIC = _NOUNS | word_set("it is this player wins has winning strategy only they are")
"""Words in an answer that only repeat the subject of the question."""

_REASON = re.compile(r"(?:because|since|as|by|for|due)\b(?!.*\b(?:yes|no|true|false|or|but|unless)\b)", re.I | re.S)
_CLAUSE = re.compile(
    r"(?:it|they|there|this|that|we|you)\s+(?:is|are|does|do|can|will|was|has|have)(?P<not>\s*not|n['’]?t)?\b\s*[.,;]?\s*",
    re.I,
)
"""Pattern of a clause that repeats yes or no: "Yes, it does", "No, it isn't"."""
_DECISIONS = frozenset({"yes", "no", "true", "false"})
_OPPOSITES = {"not true": "false", "not false": "true"}
_FRAME = re.compile(
    r"\s*(?:(?:it|that|this|there|they|he|she|we)\s+(?:is|are|was|were|has|have|had|will\s+be|would\s+be)"
    r"|[a-z](?:\([a-z]\))?\s+is(?=\s+[a-z]+\s*\.?\s*\Z)|(?:it|that|there)['’]s|la\s+respuesta(?:\s+final)?\s+es|la\s+réponse(?:\s+finale)?\s+est|die\s+(?:antwort|lösung)\s+(?:ist|lautet)"
    r"|答案(?:是|为|為)|答えは)(?:\s*[:：]\s*|\s+|(?<=[是为為は]))(?=\S)",
    re.IGNORECASE,
)
"""The beginning of a sentence that states an answer: "It is even", "There are 12"."""


def without_frame(text: str) -> str:
    """Remove a subject and verb, such as "It is", before an answer; return other texts unchanged."""
    return _FRAME.sub("", text, count=1) if _FRAME.match(text) else text


def plain_words(text: str) -> str:
    """Return a text in lower case, without commands, punctuation and articles, and with small numbers as digits."""
    text = _TEXT_COMMAND.sub(" ", text).replace("~", " ").replace("$", " ").replace("{", " ").replace("}", " ")
    text = _PUNCTUATION.sub(" ", text.replace("'s", "s").replace("'", ""))
    words = [word for word in _SPACE.split(text.lower()) if word and word not in _ARTICLES]
    return " ".join(str(_NUMBER_WORDS.get(word, word)) for word in words)


def number(text: str) -> int | Fraction | None:
    """Return the value of a number in words ("minus two hundred and five", "three quarters"), or ``None``."""
    if "\\" in text or "=" in text:
        return None
    if (negative := _NEGATIVE.match(text)) is not None:
        found = number(text[negative.end() :])
        return None if found is None else -found
    if (match := _PARTS.fullmatch(text.strip().rstrip(" ."))) is not None:
        top = 1 if match["top"].lower() == "a" else number(match["top"])
        bottom = number(_cardinal(match["bottom"].lower().removesuffix("s")))
        whole = number(match["whole"]) if match["whole"] else 0
        if isinstance(top, int) and isinstance(whole, int) and isinstance(bottom, int) and 0 < top < bottom:
            return whole + Fraction(top, bottom)
        if match["bottom"].endswith(("s", "half", "quarter")):
            return None  # such as "seven halves"
    if _HAN.fullmatch(text):
        return _han(text)
    text = text.lower().strip().rstrip(" .")  # ".75" is not 75
    head, _, final = text.rpartition(" ")
    if (bottom := _DENOMINATORS.get(final)) is not None:
        top = 1 if head in ("", "a", "la", "le", "el", "die", "das") else number(head)
        return Fraction(top, bottom) if isinstance(top, int) and 0 < top < bottom else None  # such as "la mitad"
    for pattern, parts in _COMPOUNDS:
        text = pattern.sub(parts, text)
    words = re.split(r"[\s-]+", text.strip())
    if words[-1] in _JOINTS:
        return None  # such as "8 A"
    words = [word for word in words if word not in _JOINTS]
    if final in SCALES and isinstance(part := number(head), Fraction):
        return part * SCALES[final]  # such as "two and a half million"
    if not 1 <= len(words) <= _MAX_NUMBER_WORDS:
        return None
    if words[-1] not in ("half", "halve", "quarter"):
        words[-1] = _cardinal(words[-1])  # such as "twenty-third"
    total, group, last, scaled = 0, 0, 10**15, 10**15
    french = any(word in _NAMED for word in words)
    for word in words:
        small = _NUMBER_WORDS.get(word, _NAMED.get(word))
        scale = 100 if french and word in ("cent", "cents") else SCALES.get(word)
        if small is None and word.isdecimal() and len(words) == 1 and len(word) < 20:
            small = int(word)
        if small is not None:
            size = 1 if small < 10 else 10 if small < 100 else 100
            if size >= last:
                return None  # such as "five six"
            group, last = group + small, 1 if small < 20 else size
        elif scale == 100:
            if group >= 100:
                return None
            group, last = (group or 1) * 100, 100
        elif scale is not None and scale < scaled:
            total, group, last, scaled = total + (group or 1) * scale, 0, 10**15, scale
        else:
            return None
    return total + group


def with_digits(text: str) -> str | None:
    """Write the numbers in "seven dollars and fifty cents" as digits; ``None`` if the first word is not a number."""
    words, made, at = text.split(), list[str](), 0
    while at < len(words):
        end = next((end for end in range(len(words), at, -1) if number(" ".join(words[at:end])) is not None), at)
        if end == at and at == 0:
            return None
        if end > at and words[at] not in _JOINTS:
            made.append(str(number(" ".join(words[at:end]))))
            at = end
        else:
            made.append(words[at])
            at += 1
    return " ".join(made)


def _han(text: str) -> int | None:
    """Return the value of a number in Chinese characters, such as 250 for "二百五十", or ``None``."""
    total, group, digit, last, inner = 0, 0, None, 10**9, 10**4
    for char in text:
        unit = _HAN_UNITS.get(char)
        if unit is None:
            if digit:
                return None
            digit = _HAN_DIGITS[char]
        elif unit >= 10**4:
            if unit >= last:
                return None
            total, group, digit, last, inner = total + (group + (digit or 0) or 1) * unit, 0, None, unit, 10**4
        else:
            if unit >= inner:
                return None
            group, digit, inner = group + (1 if digit is None else digit) * unit, None, unit
    after_scale = inner == 10**4 and last < 10**9  # "一万二" is 12,000 in speech, "二百五" 250
    if digit and (after_scale or 10 < inner < 10**4) and not {"零", "〇"} & set(text):
        return None
    return total + group + (digit or 0)


def _cardinal(name: str) -> str:
    """Return the cardinal of an ordinal, such as "thirty-six" for "thirty-sixth"; other words unchanged."""
    head, hyphen, last = name.rpartition("-")
    regular = f"{last[:-4]}y" if last.endswith("ieth") else last.removesuffix("th")
    return head + hyphen + _ORDINALS.get(last, regular)


def canonical(text: str) -> str:
    """Return a text in canonical spelling, or the symbol of a known phrase, such as ``#empty`` or ``#undefined``."""
    words = plain_words(text)
    return _PHRASES.get(words, words)


def decision(text: str) -> str | None:
    """Return the decision ("yes", "no", "true", "false") with which a text begins; ``None`` for other texts.

    After the decision, the text must end, repeat the decision or give a reason: "Yes, because 7 is prime".
    """
    match = re.match(
        r"\s*(?:(?:the\s+)?answer\s*(?:is|:)\s*|(?:the|this|that)\s+(?:statement|claim|proposition)\s+is\s+)?"
        r"(yes|no|true|false|not true|not false)\b[\s.,;:!]*(.*)",
        _TEXT_COMMAND.sub(" ", text).strip(" {}$"),
        re.I | re.S,
    )
    if match is None:
        return {"T": "true", "F": "false"}.get(text.strip(" .()"))
    rest = match[2].strip(" .!")
    if (clause := _CLAUSE.match(rest)) is not None and bool(clause["not"]) is (match[1].lower() in ("no", "false")):
        rest = rest[clause.end() :]
    said = _OPPOSITES.get(match[1].lower(), match[1].lower())
    return said if not rest or _REASON.match(rest) else None


def same_text(gold: str, answer: str) -> bool:
    """Return whether two texts have the same words, ignoring punctuation; texts without words are never equal."""
    one, other = canonical(gold), canonical(answer)
    if (decided := decision(gold)) is not None and decided == decision(answer):
        # One of them must end there: two different explanations of the same "yes" are two answers.
        return one in _DECISIONS or other in _DECISIONS or one == other
    if not _LETTERS.search(one) or not _LETTERS.search(other):
        bare = all(plain_words(text) == text.strip().lower() for text in (gold, answer))  # "75", not ".75" or "-75"
        return bare and one == other != "" and one.isalnum()
    if one == other or one.replace(" ", "") == other.replace(" ", ""):
        return True
    # "an even function" is even, and "isosceles" an isosceles triangle; an even function is not an even number.
    said, named = ({word for word in text.split() if word in _GENERIC} for text in (other, one))
    if bool(said) == bool(named) or not named <= _NOUNS:
        return False
    plain = [canonical(" ".join(word for word in text.split() if word not in _GENERIC)) for text in (one, other)]
    return plain[0] == plain[1] != ""


def is_contained(gold: str, answer: str) -> bool:
    """Return whether the answer is a part of the gold sentence with the same negation, as the lenient rules allow."""
    one, other = plain_words(gold).split(), plain_words(answer).split()
    if not other or len(other) > len(one):
        return False
    if any(word in _NEGATIONS for word in one) != any(word in _NEGATIONS for word in other):
        return False
    return any(one[start : start + len(other)] == other for start in range(len(one) - len(other) + 1))


_NEGATIONS = frozenset({"not", "no", "never", "none", "neither", "nor", "cannot", "isnt", "doesnt", "without"})

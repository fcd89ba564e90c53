r"""Finds the answer in a longer text: a model's response or a worked solution.

These places are tried in order: the last box; the text after the last "final answer is", then after the last "answer
is"; the last formula; in a text of several sentences without a formula, the last number. A bare answer is returned
unchanged. Programs and tool results are removed first. This is meant for files of responses and for gold answers in
solutions; in an environment, the method ``answer`` of its dialect (``rstar2_env/dialects``) is stricter. The time is
linear in the length of the text.
"""

from __future__ import annotations

import re

from rstar2_env.verification.read import boxed
from rstar2_env.verification.read.names import is_word

TAIL_CHARS = 4000
"""Number of characters at the end of a text that are searched for an answer if the text has no box."""

MAX_BARE_CHARS = 2000
"""Length of the longest bare answer, in characters; a longer text always counts as a response."""

_SPECIAL = re.compile(r"<\|[^|<>]{1,40}\|>.*\Z", re.DOTALL)
_THINKING = re.compile(r"\A.*</think>", re.DOTALL)
_ANCHORS = (
    re.compile(r"^\s*####[ \t]*", re.MULTILINE),
    re.compile(r"final\s+answer\**\s*(?:is)?\s*[:：=]?\**(?=\s*\S)", re.IGNORECASE),
    re.compile(
        r"(?:\banswer|\bréponse|\brespuesta|\bantwort|\bответ|\bjibu|答案|答え|উত্তর|คำตอบ|సమాధానం)\**\s*"
        r"(?:(?:is|est|es|ist|ni|是|は|হল|คือ)(?![a-z])\s*[:：]?|[:：=])\**",
        re.IGNORECASE,
    ),
)
_FORMULA = re.compile(
    r"\$\$(?P<a>.+?)\$\$|\\\[(?P<b>.+?)\\\]|\\\((?P<c>[^\n]+?)\\\)|(?<!\\)\$(?P<d>[^$\n]+?)(?<!\\)\$", re.DOTALL
)
_NUMBER = re.compile(
    r"(?:(?<![\w.])|(?<=[\u3040-\u9fff]))[$€£]?\s?-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:\s*/\s*\d+)?(?![\w]*[a-zA-Z_]\d)(?:\s*(?:\\?%|percent\b|pct\b|[€$£]))?"
)
_SENTENCE_END = re.compile(r"(?<=[^\d\s])[.!?。](?=\s|$)|(?<=\d)[.!?。](?=\s+[^\d\s]|\s*$)|\n\s*\n|[。।]|です")
_WORD = re.compile(r"(?<![\\{_]|[^\W\d])[a-zA-Z\u00c0-\u02ff]{2,}(?![^\W\d_]|\})|[^\x00-\u02ff]{2,}")
_TEXT_GROUP = re.compile(r"\\(?:text|mathrm|textbf|mbox|textnormal)\s*\{[^{}]*\}")
_NEGATION = re.compile(
    r"\b(?:not|no|never|cannot|neither|nor|fails?|impossible|unknown|wrong|incorrect|anything but)\b|n't\b",
    re.IGNORECASE,
)
_MAX_BARE_WORDS = 3
_LETTER = re.compile(r"\(?([A-J])\)?(?=[\s.,;:)]|$)")


def is_response(text: str) -> bool:
    """Return whether a text is not a bare answer: it has a box, many words, or a phrase such as "the answer is"."""
    if len(text) > MAX_BARE_CHARS or "\\boxed" in text or "\\fbox" in text or "<|" in text or "####" in text:
        return True
    outside = _TEXT_GROUP.sub(" ", _FORMULA.sub(" ", text))
    words = sum(not run.isascii() or is_word(run) for run in _WORD.findall(outside))
    if words > _MAX_BARE_WORDS or (words and _FORMULA.search(text) is not None):
        return True
    return any(anchor.search(text) for anchor in _ANCHORS)


def extract_answer(text: str, *, gold: bool = False) -> str | None:
    """Return the answer in a longer text; ``None`` if the text has none.

    Environments extract the answer of a turn with their dialect instead (``Dialect.answer``, ``rstar2_env/dialects/``).

    Args:
        text: A response, a worked solution or a bare answer.
        gold: Whether the text is a gold answer, in which several boxes in a row are parts of one answer.
    """
    text = _SPECIAL.sub("", text)
    if not gold:
        text = boxed.without_tool_text(text)
        text = _THINKING.sub("", text) or text
    if boxed.last_boxed(text) is not None:
        if not gold:
            return boxed.boxed_answer(text)
        box = boxed.gold_answer(text)
        return box + boxed.scale_after(text, box, text.rfind("}") + 1)
    if not is_response(text):
        return boxed.strip_dollars(text)
    tail = text[-TAIL_CHARS:].replace("’", "'")
    for anchor in _ANCHORS:
        matches = list(anchor.finditer(tail))
        if matches:
            return _in_sentence(_SENTENCE_END.split(tail[matches[-1].end() :].strip(), maxsplit=1)[0])
    # A single sentence without a mark does not count as a solution: "20 instead of 25" gives no value.
    sentences = sum(1 for part in _SENTENCE_END.split(tail) if part.strip())
    return _last_value(tail) if sentences > 1 or _FORMULA.search(tail) is not None else None


def _in_sentence(sentence: str) -> str | None:
    """Return the value in the text after "the answer is": a bare answer, else the last formula or number."""
    stripped = sentence.strip().strip("*_\"' ").rstrip(".")
    if not stripped or _is_denied(stripped):
        return None  # such as "The answer is not 7."
    letter = _LETTER.match(stripped)
    if letter is not None and len(_WORD.findall(stripped)) > 0:
        return letter[1]
    if not is_response(stripped):
        return boxed.strip_dollars(stripped)
    return _last_value(stripped) or stripped


def _is_denied(text: str) -> bool:
    """Whether the last number in the last sentence of a text has a negation before or after it."""
    sentences = [part for part in _SENTENCE_END.split(text) if part.strip()]
    numbers = list(_NUMBER.finditer(sentences[-1])) if sentences else []
    start = numbers[-2].end() if len(numbers) > 1 else 0
    return bool(numbers) and _NEGATION.search(sentences[-1], start) is not None


def _last_value(text: str) -> str | None:
    if _is_denied(text):
        return None  # such as "It cannot be 7"
    formulas = list(_FORMULA.finditer(text))
    if formulas:
        last = formulas[-1]
        content = next(part for part in last.groups() if part is not None)
        scale, after = boxed.scale_after(text, content, last.end()), _NUMBER.findall(text, last.end())
        return str(after[-1]).strip() if after and not scale else content.strip() + scale
    if len(re.findall(r"(?<!\\)\$", text)) > 1:
        return None  # the formulas cannot be read
    numbers = _NUMBER.findall(text)
    return str(numbers[-1]).strip() if numbers else None

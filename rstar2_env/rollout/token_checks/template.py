"""Checks a tokenizer and its chat template by rendering conversations; there is no list of known templates."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from rstar2_env.core.episode import Message
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout.chat import CHATML, ChatCodec
from rstar2_env.rollout.token_checks.findings import TokenFinding

_BARE = (
    Message("user", "What is 6 * 7?\nShow it."),
    Message("assistant", "Let me run a program. first-end"),
    Message("user", "<tool_response>\n42\n</tool_response>"),
    Message("assistant", "Once more, to be sure. second-end"),
    Message("user", "<tool_response>\nTraceback: (most recent call last)\n</tool_response>"),
    Message("assistant", "The answer is 42. third-end"),
)
_SYSTEM = (Message("system", "Solve the problem."), *_BARE)
_LOOSE = (Message("user", "\n\n What? \n"), Message("assistant", "One. first-end"))
_TEXTS = (
    "x = 1\n    y = 2\n",
    "é ∑ 漢字 😀",
    "  two  spaces  ",
    "\ttab\r\n",
    "<answer>\\boxed{1}</answer>",
    "1234567890",
)


def check_template(
    tokenizer: PreTrainedTokenizerBase,
    *,
    chat_template: str | None = None,
    chat_template_options: Mapping[str, Any] | None = None,
    vocabulary: int | None = None,
    model_stops: Sequence[int] | None = None,
) -> Iterator[TokenFinding]:
    """Check a tokenizer and its chat template, and yield the findings.

    Args:
        tokenizer: Hugging Face tokenizer to check.
        chat_template: A Jinja template; ``"chatml"`` means ``CHATML``, and ``None`` the tokenizer's own.
        chat_template_options: Variables passed to the template.
        vocabulary: Rows of the model's embedding; ``None`` if the model is unknown.
        model_stops: Stop tokens of the model's ``generation_config``; ``None`` if the model is unknown.
    """
    options = dict(chat_template_options or {})
    template = CHATML if chat_template == "chatml" else chat_template
    try:
        codec = ChatCodec(tokenizer, chat_template=chat_template, chat_template_options=options)
    except ConfigurationError as error:
        yield TokenFinding("no_chat_template", "template", str(error))
        return
    if vocabulary is not None and len(tokenizer) > vocabulary:
        yield TokenFinding("invalid_token_id", "tokenizer", f"{len(tokenizer)} ids, and {vocabulary} in the model")
    if not codec.stop_ids:
        yield TokenFinding("no_stop_token", "template")
    if model_stops is not None and not set(model_stops) & set(codec.turn("x")[-1:]):
        yield TokenFinding("not_a_stop", "generation_config", f"{sorted(model_stops)}, not {codec.turn('x')[-1:]}")

    def render(messages: Sequence[Message], *, generate: bool = False) -> str:
        records = [message.record() for message in messages]
        return str(
            tokenizer.apply_chat_template(
                records, chat_template=template, tokenize=False, add_generation_prompt=generate, **options
            )
        )

    yield from _of_words(tokenizer, codec, render)
    try:
        codec.prompt("Solve.", "What?")
        conversations = {"with a system message": _SYSTEM, "without one": _BARE}
    except ConfigurationError as error:
        yield TokenFinding("no_system_role", "template", str(error))
        conversations = {"without a system message": _BARE}
    preserves = True
    for name, messages in conversations.items():
        earlier = [messages[: at + 1] for at, message in enumerate(messages) if message.role == "assistant"]
        begun = [render(messages[:-1], generate=True), *map(render, earlier)]
        if not all(render(messages).startswith(beginning) for beginning in begun):
            preserves = False
            yield TokenFinding("rewrites_history", name)
    for name, messages in conversations.items():
        yield from _of_conversation(tokenizer, codec, name, messages, render(messages) if preserves else None)
    yield from _of_injection(tokenizer, codec)


def _of_words(tokenizer: PreTrainedTokenizerBase, codec: ChatCodec, render: Any) -> Iterator[TokenFinding]:
    head = codec.text(codec.turn(""))
    for text in _TEXTS:
        try:
            read = codec.text(codec.turn(text)).removeprefix(head)
        except ConfigurationError:
            yield TokenFinding("lossy_text", "tokenizer", f"{text!r} becomes special tokens")
            continue
        if read != text:
            yield TokenFinding("lossy_text", "tokenizer", f"{text!r} comes back as {read!r}")
    if (text := render(_LOOSE)) and _LOOSE[0].content not in text:
        yield TokenFinding("strips_text", "template")
    bare = render(_BARE[:1])
    if "system" in bare and bare.replace(_BARE[0].content, "").count("\n") > 2:
        yield TokenFinding("default_system", "template", " ".join(bare.split())[:80])
    today = (time.strftime("%d %b %Y"), time.strftime("%Y-%m-%d"))
    if any(day in bare for day in today):
        yield TokenFinding("changes_by_day", "template")


def _of_conversation(
    tokenizer: PreTrainedTokenizerBase, codec: ChatCodec, name: str, messages: Sequence[Message], whole: str | None
) -> Iterator[TokenFinding]:
    ids, mask = codec.conversation(messages)
    if ids[-1] not in codec.stop_ids:
        yield TokenFinding("turn_not_closed", name, repr(_decoded(tokenizer, ids[-1:])))
    turns = [message.content for message in messages if message.role == "assistant"]
    spans = [codec.text(span) for span in _spans(ids, mask)]
    if len(spans) != len(turns) or not all(map(str.endswith, spans, turns)):
        yield TokenFinding("wrong_mask", name, f"{[span[-20:] for span in spans]}")
    joined = _decoded(tokenizer, ids)
    if whole is not None:
        # Some templates write white space after the last turn, which is never generated.
        if not whole.startswith(joined) or whole[len(joined) :].strip():
            yield TokenFinding("joined_ids", name, _first_difference(whole, joined))
    elif missing := [message.content for message in messages if message.content.strip() not in joined]:
        yield TokenFinding("joined_ids", name, f"{missing[0]!r} is missing")


def _of_injection(tokenizer: PreTrainedTokenizerBase, codec: ChatCodec) -> Iterator[TokenFinding]:
    special = {token.content: int(i) for i, token in tokenizer.added_tokens_decoder.items() if token.special}
    plain = codec.suffix("user", "before  after", ended=True)
    for token, number in special.items():
        try:
            shown = codec.suffix("user", f"before {token} after", ended=True)
        except ConfigurationError as error:
            yield TokenFinding("injection", "tokenizer", str(error))
            return
        if shown.count(number) > plain.count(number):
            yield TokenFinding("injection", "tokenizer", repr(token))


def _spans(ids: Sequence[int], mask: Sequence[int]) -> Iterator[list[int]]:
    text = "".join(map(str, mask))
    for run in re.finditer("1+", text):
        yield list(ids[run.start() : run.end()])


def _decoded(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> str:
    return str(tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))


def _first_difference(whole: str, joined: str) -> str:
    at = next((at for at, (one, other) in enumerate(zip(whole, joined, strict=False)) if one != other), len(whole))
    return f"{joined[at : at + 30]!r}, where the template writes {whole[at : at + 30]!r}"

"""The text that a chat template writes around the messages of a conversation, found by rendering placeholders.

Covered: templates that write each message's text unchanged, or with white space stripped. Not covered: templates that
change a text in any other way, or omit it; they are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from rstar2_env.core.errors import ConfigurationError

_OPEN, _CLOSE = "\ue000", '"<\\\ue001'
"""Beginning and end of a placeholder: private-use characters, which have no meaning in templates, and characters that
a template changes if it quotes the text."""

_MARGIN = "\t\v\t"
"""White space around a placeholder, in a combination that no template writes: if it is missing in the rendered
conversation, the template stripped the text."""

_MARK = re.compile(f"({_MARGIN})?{_OPEN}(\\w+){re.escape(_CLOSE)}({_MARGIN})?")


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of one message's text in a ``Scaffold``.

    Attributes:
        name: Name of the text.
        lstrip: Whether the template strips white space at the text's start.
        rstrip: Whether the template strips white space at the text's end.
    """

    name: str
    lstrip: bool
    rstrip: bool

    def fill(self, text: str) -> str:
        """Return the text as the template writes it, stripped if the template strips it."""
        text = text.lstrip() if self.lstrip else text
        return text.rstrip() if self.rstrip else text


Scaffold = tuple[str | Slot, ...]
"""The parts of a rendered conversation in order: fixed text of the template, and slots for the messages."""


def fill(scaffold: Scaffold, texts: Mapping[str, str]) -> str:
    """Return the whole conversation: the template's text, with each slot filled from ``texts`` by the slot's name."""
    return "".join(part if isinstance(part, str) else part.fill(texts[part.name]) for part in scaffold)


def after(scaffold: Scaffold, name: str) -> Scaffold:
    """Return the part of a scaffold after the slot of that name."""
    place = next(i for i, part in enumerate(scaffold) if isinstance(part, Slot) and part.name == name)
    return scaffold[place + 1 :]


def leading_text(scaffold: Scaffold) -> str:
    """Return the template's text before the first slot."""
    return scaffold[0] if scaffold and isinstance(scaffold[0], str) else ""


class TemplateReader:
    """Finds the text that a chat template writes around the messages of conversations.

    Args:
        tokenizer: Hugging Face tokenizer with the chat template.
        template: The chat template; ``None`` means the tokenizer's own.
        options: Variables passed to the template.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, template: str | None, options: Mapping[str, Any]) -> None:
        self._tokenizer, self._template, self._options = tokenizer, template, dict(options)

    def read(self, messages: Sequence[tuple[str, str]], *, generate: bool) -> Scaffold:
        """Return the scaffold of a conversation.

        Args:
            messages: Role and slot name of each message.
            generate: Whether the conversation ends with the generation prompt, where the policy's next turn begins.

        Raises:
            ConfigurationError: The template does not write every text once, in the order of the messages.
        """
        roles = ", ".join(role for role, _ in messages)
        marked = [{"role": role, "content": f"{_MARGIN}{_OPEN}{name}{_CLOSE}{_MARGIN}"} for role, name in messages]
        try:
            text = str(
                self._tokenizer.apply_chat_template(
                    marked,
                    chat_template=self._template,
                    tokenize=False,
                    add_generation_prompt=generate,
                    **self._options,
                )
            )
        except TemplateError as error:
            raise _unfit(f"The chat template fails on a conversation with the roles {roles} ({error}).") from error
        scaffold: list[str | Slot] = []
        end = 0
        for mark in _MARK.finditer(text):
            scaffold.append(text[end : mark.start()])
            scaffold.append(Slot(mark[2], lstrip=mark[1] is None, rstrip=mark[3] is None))
            end = mark.end()
        scaffold.append(text[end:])
        if [part.name for part in scaffold if isinstance(part, Slot)] != [name for _, name in messages]:
            raise _unfit(
                f"The chat template does not write the texts of a conversation with the roles {roles} unchanged and in "
                "order."
            )
        return tuple(part for part in scaffold if part != "")


def _unfit(what: str) -> ConfigurationError:
    return ConfigurationError(
        f"{what} Correct it with chat_template_options, or choose another template.",
        option="chat_template",
        value="chatml",
    )

"""Token in, token out: turns a conversation into ids without ever re-tokenizing what the policy wrote.

The prompt is tokenized once. After each turn of the policy only the environment's new text is tokenized, as the suffix
that the chat template puts between two turns of the policy. In that suffix the template's own special tokens are special
and the environment's text is plain text: an ``<|im_end|>`` that a tool printed does not end a turn.

Covered: templates that render system, user and assistant messages in order, whether or not they rewrite earlier turns.
Not covered: templates that merge two messages into one, tool roles of a template's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from rstar2_env.errors import ConfigurationError

# Private-use characters: no template and no vocabulary gives them a meaning.
_POLICY, _OTHER = "\ue000policy\ue001", "\ue000other\ue001"

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""The ChatML template, for tokenizers that bring none."""


class ChatCodec:
    """Renders conversations with a tokenizer's chat template, as ids.

    Args:
        tokenizer: A fast Hugging Face tokenizer.
        template: Replaces the tokenizer's own chat template; ``CHATML`` is at hand.
        template_options: Passed to the template (``{"enable_thinking": False}``).

    Raises:
        ConfigurationError: There is no chat template, or it does not render system, user and assistant in order.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        template: str | None = None,
        template_options: dict[str, Any] | None = None,
    ) -> None:
        if template is None and not tokenizer.chat_template:
            raise ConfigurationError(
                f"The tokenizer {tokenizer.name_or_path or type(tokenizer).__name__!r} has no chat template. Pass one: "
                'ChatCodec(tokenizer, template=CHATML), or chat_template="chatml" in a trainer.'
            )
        self.tokenizer = tokenizer
        self._template = template
        self._options = dict(template_options or {})
        self._specials = sorted(
            (t.content for t in tokenizer.added_tokens_decoder.values() if t.special), key=len, reverse=True
        )
        self._split = re.compile("(" + "|".join(map(re.escape, self._specials)) + ")") if self._specials else None
        self._betweens: dict[str, str] = {}
        padded = f" {_OTHER} "
        self._trims = padded not in self._render([{"role": "user", "content": padded}], generate=False)
        tail = self._between("user")
        self._end = next((word for word in self._specials if tail.startswith(word)), None)
        self.stop_ids = self._stop_ids()

    def prompt(self, system: str, user: str) -> list[int]:
        """Ids of the conversation up to where the policy's first turn begins."""
        messages = [{"role": "system", "content": _OTHER}] if system else []
        messages.append({"role": "user", "content": _POLICY})
        text = self._render(messages, generate=True)
        return self._encode(text, {_OTHER: system, _POLICY: user})

    def suffix(self, role: str, text: str, *, ended: bool) -> list[int]:
        """Ids between two turns of the policy: the end of its turn if it did not write it, then ``text``.

        Args:
            role: Role of the environment's message.
            text: What the environment shows.
            ended: Whether the policy's turn holds its own end-of-turn token already.
        """
        between = self._between(role)
        if ended and self._end is not None:
            between = between.removeprefix(self._end)
        return self._encode(between, {_OTHER: text})

    def text(self, ids: Sequence[int]) -> str:
        """The policy's turn as text, without its end-of-turn token."""
        own = list(ids)
        if own and own[-1] in self.stop_ids:
            own.pop()
        return str(self.tokenizer.decode(own, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def turn(self, text: str) -> list[int]:
        """Ids of a whole turn of the policy that ends properly; for traces, not for what an engine wrote."""
        between = self._between("user")
        return self._encode(_OTHER + between[: len(self._end or "")], {_OTHER: text})

    def _render(self, messages: list[dict[str, str]], *, generate: bool) -> str:
        return str(
            self.tokenizer.apply_chat_template(
                messages,
                chat_template=self._template,
                tokenize=False,
                add_generation_prompt=generate,
                **self._options,
            )
        )

    def _between(self, role: str) -> str:
        """What the template writes from the end of a policy's turn to the beginning of its next."""
        if role in self._betweens:
            return self._betweens[role]
        messages = [
            {"role": "user", "content": "\ue002"},
            {"role": "assistant", "content": _POLICY},
            {"role": role, "content": _OTHER},
        ]
        text = self._render(messages, generate=True)
        if text.count(_POLICY) != 1 or text.count(_OTHER) != 1 or text.find(_POLICY) > text.find(_OTHER):
            raise ConfigurationError(
                f"The chat template does not render an assistant message followed by a message of role {role!r} as "
                'they are. Pass another template: ChatCodec(tokenizer, template=CHATML), or chat_template="chatml" in '
                "a trainer."
            )
        self._betweens[role] = text.partition(_POLICY)[2]
        return self._betweens[role]

    def _encode(self, scaffold: str, contents: dict[str, str]) -> list[int]:
        """Tokenize the template's text with its special tokens, and the contents within it as plain text.

        A tokenizer splits at special tokens before anything else, so runs of plain text between them tokenize alone as
        they would together; merges between template and content stay as they are in the whole.
        """
        ids: list[int] = []
        for piece in self._split.split(scaffold) if self._split else [scaffold]:
            if piece in self._specials:
                ids.append(int(self.tokenizer.convert_tokens_to_ids(piece)))
                continue
            for mark, content in contents.items():
                piece = piece.replace(mark, content.strip() if self._trims else content)
            if piece:
                ids += self.tokenizer.encode(piece, add_special_tokens=False, split_special_tokens=True)
        return ids

    def _stop_ids(self) -> tuple[int, ...]:
        found: list[Any] = [self.tokenizer.eos_token_id]
        if self._end is not None:
            found.append(self.tokenizer.convert_tokens_to_ids(self._end))
        return tuple(sorted({int(token) for token in found if token is not None}))

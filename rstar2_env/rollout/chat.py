"""Converts conversations to token ids and keeps the ids that the policy generated, without tokenizing its text again.

The prompt is tokenized once. After each turn of the policy only the environment's new text is tokenized, as the suffix
that the chat template puts between two turns of the policy. Special tokens in that suffix come from the template alone:
an ``<|im_end|>`` that a tool printed is plain text and does not end a turn.

Covered: templates that write system, user and assistant messages in order, whether or not they rewrite earlier turns.
Not covered: templates that merge two messages into one, and templates with their own tool roles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from rstar2_env.core.episode import Message
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout.scaffold import Scaffold, Slot, TemplateReader, after, fill, leading_text

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""The ChatML template, for tokenizers without a template."""

KNOWN_TEXTS, KNOWN_CHARACTERS = 512, 2048
"""Maximum number of texts whose token ids are kept, and maximum length of such a text in characters."""


class ChatCodec:
    """Converts conversations to token ids with a tokenizer's chat template.

    Args:
        tokenizer: A Hugging Face tokenizer; it is not modified.
        chat_template: A Jinja template; ``"chatml"`` means ``CHATML``, and ``None`` the tokenizer's own.
        chat_template_options: Variables passed to the template (``{"enable_thinking": False}``).
        stop_ids: Further tokens that end a turn, such as the tokens in a model's ``generation_config.eos_token_id``.

    Attributes:
        stop_ids: All tokens that end a turn of the policy: the tokenizer's end of sequence, the token that the template
            writes after a final assistant message, and ``stop_ids``.

    Raises:
        ConfigurationError: There is no chat template, or it does not render the messages in order.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        chat_template: str | None = None,
        chat_template_options: dict[str, Any] | None = None,
        stop_ids: Iterable[int] = (),
    ) -> None:
        if chat_template is None and not tokenizer.chat_template:
            raise ConfigurationError(
                f"The tokenizer {tokenizer.name_or_path or type(tokenizer).__name__!r} does not have a "
                "chat template: choose one.",
                option="chat_template",
                value="chatml",
            )
        template = CHATML if chat_template == "chatml" else chat_template
        self.tokenizer = tokenizer
        self._reader = TemplateReader(tokenizer, template, chat_template_options or {})
        self._added = {token.content: int(i) for i, token in tokenizer.added_tokens_decoder.items()}
        self._guarded: dict[str, int] = {}
        self._split = re.compile("(?!)")
        self._guard([token.content for token in tokenizer.added_tokens_decoder.values() if token.special])
        self._known: dict[str, tuple[int, ...]] = {}
        self._prompts: dict[bool, Scaffold] = {}
        self._betweens: dict[str, Scaffold] = {}
        self._head, self._close, self._final = self._turn_marks()
        ends = (tokenizer.eos_token_id, self._added.get(self._final), *stop_ids)
        self.stop_ids: tuple[int, ...] = tuple(sorted({int(end) for end in ends if end is not None}))

    def prompt(self, system: str, user: str) -> list[int]:
        """Return the ids of the conversation up to the start of the policy's first turn.

        Args:
            system: The system message; if it is empty, the template may add its default.
            user: The first user message.

        Raises:
            ConfigurationError: The template does not accept a system message.
        """
        return self._encode(self._prompt(bool(system)), {"system": system, "user": user})

    def suffix(self, role: str, text: str, *, ended: bool) -> list[int]:
        """Return the ids between two policy turns: the environment's message, as the template writes it.

        The ids begin with the end-of-turn token, unless the policy generated that token.

        Args:
            role: Role of the environment's message.
            text: Text of that message.
            ended: Whether the policy's turn already contains its end-of-turn token.

        Raises:
            ConfigurationError: The template does not write messages of that role.
        """
        between = self._between(role)
        ids = self._encode(between, {"other": text})
        closes = bool(self._close) and leading_text(between).startswith(self._close)
        return ids[1:] if ended and closes else ids

    def text(self, ids: Sequence[int]) -> str:
        """Decode the ids of a policy turn to text, without its end-of-turn token."""
        own = list(ids)
        if own and own[-1] in self.stop_ids:
            own.pop()
        return str(self.tokenizer.decode(own, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def plain(self, text: str) -> list[int]:
        """Tokenize a text, and encode the template's special tokens in it as plain text."""
        return self._encode((Slot("text", lstrip=False, rstrip=False),), {"text": text})

    def turn(self, text: str) -> list[int]:
        """Return the token ids of a policy turn that is given as text, including the end-of-turn token."""
        return self._encode((self._head, Slot("policy", lstrip=False, rstrip=False), self._final), {"policy": text})

    def conversation(
        self, messages: Sequence[Message], learned: Sequence[bool] | None = None
    ) -> tuple[list[int], list[int]]:
        """Return ids and mask of a finished conversation, as if an engine had generated its turns.

        Args:
            messages: Optionally a system message; then a user message and a turn of the policy; then, any number of
                times, a message of the environment and a turn of the policy.
            learned: For each turn of the policy, whether the mask is 1 on its tokens; ``None`` means 1 for all turns.

        Returns:
            The ids, and a mask that is 1 on the policy's tokens, including its end-of-turn tokens.

        Raises:
            ConfigurationError: The roles do not come in that order.
        """
        system = messages[0].content if messages and messages[0].role == "system" else ""
        rest = list(messages[1:] if system else messages)
        roles = ["assistant" if message.role == "assistant" else "other" for message in rest]
        if len(rest) < 2 or roles != ["other", "assistant"] * (len(rest) // 2):
            raise ConfigurationError(
                "A trace must consist of pairs of a user message and a turn of the policy; this one has the "
                f"roles {[message.role for message in messages]}."
            )
        ids = self.prompt(system, rest[0].content)
        mask = [0] * len(ids)
        for number, message in enumerate(rest[1:]):
            policy = number % 2 == 0
            new = self.turn(message.content) if policy else self.suffix(message.role, message.content, ended=True)
            ids += new
            mask += [int(policy and (learned is None or learned[number // 2]))] * len(new)
        return ids, mask

    def _turn_marks(self) -> tuple[str, str, str]:
        """Return the text that the template writes at the edges of a policy turn.

        Returns:
            The text between the generation prompt and the turn's text; the token that closes an earlier turn; and the
            token that closes the last turn, which the policy generates. In most templates the first is empty, and the
            other two are the same; GPT-OSS has ``<|channel|>final<|message|>``, ``<|end|>`` and ``<|return|>``.
        """
        last = self._reader.read([("user", "user"), ("assistant", "policy")], generate=False)
        final = self._leading_token(after(last, "policy"))
        # If the template has no end-of-turn token, what follows a turn is the header of the next message.
        close = self._leading_token(self._between("user")) if final else ""
        messages = [("user", "user"), ("assistant", "policy"), ("user", "other")]
        written = leading_text(after(self._reader.read(messages, generate=True), "user"))
        opened = leading_text(after(self._prompt(False), "user"))
        return written.removeprefix(opened) if written.startswith(opened) else "", close, final

    def _leading_token(self, scaffold: Scaffold) -> str:
        text = leading_text(scaffold)
        return max((token for token in self._added if text.startswith(token)), key=len, default="")

    def _prompt(self, system: bool) -> Scaffold:
        if system not in self._prompts:
            messages = [("system", "system"), ("user", "user")] if system else [("user", "user")]
            self._prompts[system] = self._guard_edges(self._reader.read(messages, generate=True))
        return self._prompts[system]

    def _between(self, role: str) -> Scaffold:
        """Return the template's text between two policy turns, with a slot for the message between them."""
        if role not in self._betweens:
            messages = [("user", "user"), ("assistant", "policy"), (role, "other")]
            self._betweens[role] = self._guard_edges(after(self._reader.read(messages, generate=True), "policy"))
        return self._betweens[role]

    def _guard_edges(self, scaffold: Scaffold) -> Scaffold:
        """Record the tokenizer's added tokens that the template puts next to messages; return the scaffold unchanged.

        These tokens are guarded: within a message, they become plain text. Some of them are not marked special, such as
        DeepSeek's ``<｜User｜>``, which opens a turn. White space is not guarded: it opens no turn by itself, and in
        Gemma 3 every line break is an added token.
        """
        for number, part in enumerate(scaffold):
            if isinstance(part, str):
                self._guard(
                    token
                    for token in self._added
                    if token.strip()
                    and (part.startswith(token) or (part.endswith(token) and number + 1 < len(scaffold)))
                )
        return scaffold

    def _guard(self, tokens: Iterable[str]) -> None:
        self._guarded |= {token: self._added[token] for token in tokens}
        self._guarded_ids = frozenset(self._guarded.values())
        longest_first = sorted(self._guarded, key=len, reverse=True)
        if longest_first:
            self._split = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")")

    def _encode(self, scaffold: Scaffold, texts: Mapping[str, str]) -> list[int]:
        """Tokenize the scaffold filled with ``texts``, in which guarded tokens (``_guard_edges``) become plain text.

        Usually no text contains a guarded token, and everything is tokenized at once. If guarded ids appear that do not
        come from the template, every guarded token within a text is split in two.
        """
        # A lone surrogate is not valid Unicode, and tokenizers refuse it.
        texts = {name: text.encode("utf-8", "replace").decode() for name, text in texts.items()}
        frame = [
            self._guarded[piece]
            for part in scaffold
            if isinstance(part, str)
            for piece in self._split.split(part)
            if piece in self._guarded
        ]
        ids = self._ids(fill(scaffold, texts))
        if self._guarded_in(ids) == frame:
            return ids
        ids, run = [], [""]
        for part in scaffold:
            for piece in self._split.split(part if isinstance(part, str) else part.fill(texts[part.name])):
                if piece not in self._guarded:
                    run[-1] += piece
                elif isinstance(part, str):
                    ids += [i for plain in run for i in self._ids(plain)] + [self._guarded[piece]]
                    run = [""]
                else:
                    run[-1] += piece[: len(piece) // 2]
                    run.append(piece[len(piece) // 2 :])
        ids += [i for plain in run for i in self._ids(plain)]
        if self._guarded_in(ids) != frame:
            raise ConfigurationError(
                "The environment's text contains the characters of a special token. Although the characters are "
                "tokenized in two parts, this tokenizer turns them into a special token, so a text of the environment "
                "could end a turn of the model. Use a tokenizer that does not normalize text before it looks for "
                "special tokens."
            )
        return ids

    def _ids(self, text: str) -> list[int]:
        # The episodes of a group have the same prompt, and often the same observations.
        known = self._known.get(text)
        if known is None:
            known = () if not text else tuple(map(int, self._tokenize(text)))
            if len(text) <= KNOWN_CHARACTERS:
                if len(self._known) >= KNOWN_TEXTS:
                    self._known.clear()
                self._known[text] = known
        return list(known)

    def _tokenize(self, text: str) -> Iterable[int]:
        ids: Iterable[int] = self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=False)
        return ids

    def _guarded_in(self, ids: Sequence[int]) -> list[int]:
        return [i for i in ids if i in self._guarded_ids]

"""A transformers model in this process, for agents: token ids in, token ids out, one episode at a time.

The conversation is kept as token ids, as in training: generated text is never tokenized again. All agents of a process
that name the same model share it; torch and transformers are imported when the model is loaded. Not covered: many
concurrent episodes, for which an engine is faster (``rstar2 eval --model``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rstar2_env.core.errors import ConfigurationError, UnusableReplyError

Processor = Callable[[], Any]
"""Function that returns a ``LogitsProcessor`` for one turn."""

_models: dict[tuple[str, str | None], LocalModel] = {}
_lock = threading.RLock()


class LocalModel:
    """A model and its tokenizer; create it with ``local_model``.

    Args:
        path: Folder of the model, or its name on the Hugging Face hub.
        chat_template: ``"chatml"``, a Jinja template, or ``None`` for the tokenizer's own.

    Attributes:
        model: The transformers model, in evaluation mode.
        chat: The codec that renders a conversation as token ids.

    Raises:
        ConfigurationError: There is no such model, or it has no chat template.
    """

    def __init__(self, path: str, chat_template: str | None) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from rstar2_env.rollout.chat import ChatCodec

        self._key = (path, chat_template)
        try:
            self.model: Any = AutoModelForCausalLM.from_pretrained(path, dtype="auto")
            self.model.train(False)
            tokenizer: Any = AutoTokenizer.from_pretrained(path)
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"The model {path!r} cannot be loaded: {error}") from error
        ends = self.model.generation_config.eos_token_id
        self.chat = ChatCodec(
            tokenizer,
            chat_template=chat_template,
            stop_ids=ends if isinstance(ends, (list, tuple)) else [] if ends is None else [ends],
        )

    @property
    def vocabulary(self) -> dict[str, int]:
        """Map of every token to its id."""
        return dict(self.chat.tokenizer.get_vocab())

    def generate(self, ids: Sequence[int], *, seed: int, processor: Any = None, **sampling: Any) -> list[int]:
        """Generate the token ids of the next turn, including the end token.

        Args:
            ids: Token ids of the conversation so far.
            seed: Seed of sampling; the state of torch's global generator is unchanged.
            processor: A ``LogitsProcessor``, applied before temperature and nucleus sampling.
            **sampling: ``max_tokens``, ``temperature`` and ``top_p``.
        """
        import torch
        from transformers import LogitsProcessorList

        temperature = sampling["temperature"]
        draws = {"do_sample": True, "temperature": temperature, "top_p": sampling["top_p"], "top_k": 0}
        greedy = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        inputs = torch.tensor([list(ids)], device=self.model.device)
        with _lock, torch.random.fork_rng(), torch.inference_mode():
            torch.manual_seed(seed)
            out = self.model.generate(
                inputs,
                attention_mask=torch.ones_like(inputs),
                max_new_tokens=sampling["max_tokens"],
                eos_token_id=list(self.chat.stop_ids) or None,
                pad_token_id=(self.chat.stop_ids or (0,))[0],
                logits_processor=LogitsProcessorList([] if processor is None else [processor]),
                **(draws if temperature > 0 else greedy),
            )
        return [int(one) for one in out[0, len(ids) :]]

    def __deepcopy__(self, memo: Any) -> LocalModel:
        """Return the model itself: a copied agent shares it."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments that load the model."""
        return local_model, self._key


def local_model(path: str, chat_template: str | None = None) -> LocalModel:
    """Return the model with the given path or name, loaded once per process.

    Args:
        path: Folder of the model, or its name on the Hugging Face hub.
        chat_template: ``"chatml"``, a Jinja template, or ``None`` for the tokenizer's own.

    Raises:
        ConfigurationError: There is no such model, or it has no chat template.
    """
    with _lock:
        key = (path, chat_template)
        if key not in _models:
            _models[key] = LocalModel(*key)
        return _models[key]


class LocalTurns:
    """Base class of agents that play the turns of a local model: ``LocalPolicy`` and ``LogitTransfer``.

    Args:
        model: The model that generates the turns.
        sampling: Default arguments of ``model.generate``: the keys ``max_tokens``, ``temperature`` and ``top_p``.
    """

    def __init__(self, model: LocalModel, sampling: Mapping[str, Any]) -> None:
        self._model, self._sampling = model, dict(sampling)
        self.usage: dict[str, float] = {}
        self._ids: list[int] = []
        self._seed = self._spoken = 0
        self._ended = True

    def processor(self) -> Any:
        """Return a ``LogitsProcessor`` for one turn; ``None``, the default, leaves the logits unchanged."""
        return None

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Start an episode.

        Args:
            observation: The text that the environment's ``reset`` returned.
            info: The ``info`` that ``reset`` returned; ``system`` is the system message.
            seed: Seed of all random draws.
        """
        self._system, self._ids = str(info.get("system") or ""), []
        self._seed, self._spoken, self.usage = seed, 0, {"requests": 0.0, "prompt_tokens": 0.0}
        self.usage["completion_tokens"] = 0.0

    def reseed(self, seed: int) -> None:
        """Change the seed of all later draws."""
        self._seed = seed

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next turn.

        Raises:
            UnusableReplyError: The conversation is longer than the model's context.
        """
        self._hear(observation, info)
        return self._speak([])

    def go_on(self, observation: str, info: Mapping[str, Any], begun: str) -> str:
        """Continue a partial turn; return the text that follows.

        Args:
            observation: The last observation of the environment.
            info: The ``info`` of that observation.
            begun: The text with which the turn begins.
        """
        self._hear(observation, info)
        return self._speak(self._model.chat.plain(begun))

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens in a text."""
        return len(self._model.chat.plain(text))

    def _hear(self, observation: str, info: Mapping[str, Any]) -> None:
        chat = self._model.chat
        text = observation.encode("utf-8", "replace").decode("utf-8")  # no tokenizer accepts lone surrogates
        if not self._ids:
            self._ids = chat.prompt(self._system, text)
        else:
            self._ids += chat.suffix(str(info.get("role", "user")), text, ended=self._ended)

    def _speak(self, begun: list[int]) -> str:
        asked = [*self._ids, *begun]
        most = getattr(self._model.model.config, "max_position_embeddings", None)
        if most is not None and len(asked) + 1 > most:
            raise UnusableReplyError(
                "cut",
                f"The conversation has {len(asked)} tokens, and the model accepts at most {most} tokens, "
                "so there is no room for a reply: shorten the episode, or use a model with a longer "
                "context.",
            )
        # Every turn of an episode has its own seed.
        seed = (self._seed + 7919 * self._spoken) % (1 << 31)
        said = self._model.generate(asked, seed=seed, processor=self.processor(), **self._sampling)
        self._ids, self._spoken = asked + said, self._spoken + 1
        self._ended = bool(said) and said[-1] in self._model.chat.stop_ids
        self.usage["requests"] += 1
        self.usage["prompt_tokens"] += len(asked)
        self.usage["completion_tokens"] += len(said)
        return self._model.chat.text(said)

"""Check, before any episode is played, that the engine accepts conversations as long as the token budgets allow.

An episode that reaches the engine's limit ends as ``tokens``, like an episode that has used up its budget. An engine
limit below the budget would therefore silently shorten every long episode.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing
from typing import Any

from rstar2_env.core.command.running_command import named_in
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder.layout import Split
from rstar2_env.rollout import ChatCodec, Engine
from rstar2_env.rollout.engine import longest_conversation

from ....options.config import TrainConfig
from ..players import env_factory

_log = logging.getLogger(__name__)

_SEED = 0


def check_lengths(config: TrainConfig, engine: Engine, chat: ChatCodec, positions: int | None) -> None:
    """Check that engine and model accept a prompt followed by the longest possible episode.

    Args:
        config: Options of the run.
        engine: Generates the episodes.
        chat: Renders their prompts.
        positions: Number of positions that the model was trained for, ``None`` if unknown. A longer episode is allowed,
            with a warning.

    Raises:
        ConfigurationError: The engine's limit is lower than a budget and a prompt together.
    """
    splits: tuple[Split, ...] = ("train", "eval") if config.eval.every else ("train",)
    for split in splits:
        tokens = config.rollout.max_episode_tokens if split == "train" else config.in_evaluation("max_episode_tokens")
        option = "rollout.max_episode_tokens"
        if split == "eval" and config.eval.max_episode_tokens is not None:
            option = "eval.max_episode_tokens"
        prompt = _prompt_tokens(env_factory(config, split), chat)
        check_fits(tokens, engine, prompt=prompt, option=option)
        if positions is not None and prompt + tokens > positions:
            shown = named_in("train", "--max-tokens", option) if option.startswith("rollout.") else option
            _log.warning(
                "The model was trained on texts of at most %d tokens, but an episode may have %d tokens "
                "(%s=%d after a prompt of %d tokens): lower this limit if the model's answers become "
                "worse towards the end of long episodes.",
                *(positions, prompt + tokens, shown, tokens, prompt),
            )


def check_fits(tokens: int, engine: Engine, *, prompt: int = 1, option: str = "max_episode_tokens") -> None:
    """Check that an engine accepts a prompt followed by ``tokens`` tokens.

    Args:
        tokens: Token budget of an episode.
        engine: Generates the episode.
        prompt: Number of tokens of the prompt.
        option: Name of the budget's option, for the error message.

    Raises:
        ConfigurationError: The engine accepts fewer tokens.
    """
    longest = longest_conversation(engine)
    if longest is not None and prompt + tokens > longest:
        raise ConfigurationError(
            f"Conversations may have {prompt + tokens} tokens (a prompt of {prompt} and "
            f"{option}={tokens}), but the engine accepts at most {longest}: set its max_model_len to "
            f"{prompt + tokens} or more (for servers, the argument --max-model-len), or lower {option} to "
            f"{max(longest - prompt, 0)}."
        )


def _prompt_tokens(make_env: Callable[[], Any], chat: ChatCodec) -> int:
    """Count the tokens of one prompt; return 1 if the environment fails, since the first rollout will report that."""
    try:
        with closing(make_env()) as env:
            text, info = env.reset(seed=_SEED)
    except Exception:
        return 1
    return len(chat.prompt(str(info.get("system") or ""), text))

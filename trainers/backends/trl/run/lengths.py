"""Lengths checked against each other before anything is played: an engine's longest conversation and the token budgets.

An episode that meets the engine's limit ends as ``tokens``, like one that has used up its budget; a limit that is the
lower of the two would shorten every long episode without a word.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout import ChatCodec, Engine
from rstar2_env.rollout.engine import longest_conversation

from ....options.config import TrainConfig
from ..players import Split, env_factory

_log = logging.getLogger(__name__)

_SEED = 0


def check_lengths(config: TrainConfig, engine: Engine, chat: ChatCodec, positions: int | None) -> None:
    """Check that a prompt and the longest episode after it fit into what engine and model accept.

    Args:
        config: Options of the run.
        engine: Generates the episodes.
        chat: Renders their prompts.
        positions: Positions that the model was made for; more are computed all the same, and warned about.

    Raises:
        ConfigurationError: An engine's limit is lower than a budget and a prompt together.
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
            _log.warning(
                "The model was made for %d positions, and an episode may reach %d (%s=%d after a prompt of %d tokens).",
                *(positions, prompt + tokens, option, tokens, prompt),
            )


def check_fits(tokens: int, engine: Engine, *, prompt: int = 1, option: str = "max_episode_tokens") -> None:
    """Check that an engine accepts so many tokens after a prompt.

    Args:
        tokens: The budget of an episode.
        engine: Generates it.
        prompt: Tokens of the prompt.
        option: Name of the budget, for the message.

    Raises:
        ConfigurationError: It accepts fewer.
    """
    longest = longest_conversation(engine)
    if longest is not None and prompt + tokens > longest:
        raise ConfigurationError(
            f"{option}={tokens} after a prompt of {prompt} tokens makes conversations of {prompt + tokens}, and the "
            f"engine accepts {longest}: give it a max_model_len of {prompt + tokens} or more (of servers, start them "
            f"with --max-model-len), or lower {option} to {max(longest - prompt, 0)}."
        )


def _prompt_tokens(make_env: Callable[[], Any], chat: ChatCodec) -> int:
    """Tokens of one of the environment's prompts; 1 where it fails, which is the first rollout's to tell."""
    try:
        env = make_env()
        try:
            text, info = env.reset(seed=_SEED)
        finally:
            env.close()
    except Exception:
        return 1
    return len(chat.prompt(str(info.get("system") or ""), text))

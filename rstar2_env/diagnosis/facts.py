"""``facts_of``: extracts from an episode in a run's folder the facts that checks need."""

from __future__ import annotations

import functools
import hashlib
import re

from rstar2_env.core.episode_metrics import repetition
from rstar2_env.core.run_folder import EpisodeEntry
from rstar2_env.diagnosis.record import EpisodeDigest

_MARKUP = re.compile(
    r"<\|(?!(?:pad|unk|mask|fim_\w+)\|>)[A-Za-z0-9_ .:/-]{1,40}\|>"  # ChatML, Llama 3, Harmony, Phi, GLM
    r"|<｜[^｜<>\n]{1,40}｜>"  # DeepSeek
    r"|</?(?:start|end)_of_(?:turn|role|text)>|<(?:bos|eos|extra_id_\d+)>|(?:^|\n)<s>|</s>(?:\n|$)"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]|<</?SYS>>"
    r"|(?:^|\n)(?:#{2,3} ?)?(?:USER|ASSISTANT|Human|Assistant|User|Instruction|Response): ?(?=\S|\n|$)"
)
"""Pattern of the markup of chat templates: their special tokens, and lines that start with a role. A policy that uses
its template correctly never writes markup as text: the tokens that end its turn are not part of the text. Special
tokens that do not belong to a template, such as padding, do not match: an untrained policy writes any token."""
_PIECES = re.compile(r"\S{1,32}")
"""Pattern of words of up to 32 characters. A longer word counts as several words, since a loop without white space, or
a text in a language without white space, would otherwise be a single word."""


def facts_of(entry: EpisodeEntry, key: str, rank: int = 0) -> EpisodeDigest:
    """Extract from an episode the facts that checks need.

    Args:
        entry: The episode.
        key: Key of the episode in the viewer.
        rank: Rank of the process that wrote the episode.
    """
    episode = entry.episode
    written = [message.content for message in episode.messages if message.role == "assistant"]
    asked = next((message.content for message in episode.messages if message.role == "user"), "")
    last = episode.steps[-1].info if episode.steps else {}
    verdict = last.get("verdict")
    decision = entry.decision
    return EpisodeDigest(
        key=key,
        step=entry.step,
        rank=rank,
        group=episode.group,
        round=decision.round if decision else 0,
        problem=episode.problem_id,
        question=_question_digest(asked),
        task=episode.task,
        seed=episode.seed,
        kept=entry.kept,
        reason=decision.reason if decision else "",
        advantage=decision.advantage if decision else None,
        reward=episode.reward,
        rewards=episode.rewards,
        correct=episode.correct,
        end=episode.end,
        turns=episode.turns,
        statuses=tuple(episode.statuses),
        injected=len(episode.injected),
        tokens=episode.policy_tokens,
        tags=episode.answer_tags,
        repetition=repetition(episode, _PIECES.findall),
        text=digest("\0".join(written)) if any(written) else "",
        markup=any(_MARKUP.search(text) for text in written),
        verdict=str(verdict.get("reason", "")) if isinstance(verdict, dict) else "",
        prompt_tokens=int(entry.more.get("prompt_tokens") or 0),
        cut_prompt=entry.more.get("cut_prompt"),
        available=episode.available,
    )


@functools.lru_cache(maxsize=1024)
def _question_digest(asked: str) -> str:
    return digest("".join(asked.split()).lower()) if asked else ""


def digest(text: str) -> str:
    """Return a short digest of a text; equal texts have equal digests."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

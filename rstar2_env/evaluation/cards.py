"""Descriptions of environments, made from their docstring, their signature and a played episode.

Covered: the one-line description, the arguments ("knobs") and the mean reward of a random player ("baseline") of each
environment, and the gallery docs/environments.md. Not covered: the layout on a terminal (see ``rstar2_env.cli.envs``).
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import re
from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.options.plugins import plugin_ids
from rstar2_env.env.named import EXTRA_OF, find_env
from rstar2_env.env.reference import reference_of
from rstar2_env.evaluation.play.episode import play_episode
from rstar2_env.evaluation.validation.exploit_table import stored, table
from rstar2_env.wrappers.make import make_env

_COMMON = {
    "self", "problems", "dialect", "dialect_options", "split", "holdout", "sandbox", "limits", "max_output",
    "output_tokenizer", "traceback", "verifier", "verify_timeout_s", "max_turns", "max_tokens", "max_seconds",
    "tokenizer", "timings", "max_text", "render_mode", "options", "tool", "tools", "more",
}  # fmt: skip
_MOST_TURNS = 60
_SEEDS = 20
_LONGEST_MESSAGE = 1500
_FIRST_MESSAGES, _LAST_MESSAGES = 5, 2
"""Numbers of messages that the gallery shows from the beginning and from the end of a long episode."""

PAGE = "environments.md"
"""Name of the gallery's file in ``docs/``; the gallery shows every environment."""

_INTRODUCTION = """\
# Environments

This page lists all environments of this package, each with one real episode of a player that knows the answer. This
page is generated from the code: `rstar2 list envs --markdown > docs/environments.md`. `rstar2 list envs ID` prints the
full card of one environment. A knob is an argument of `gym.make(ID, knob=...)`; environments with problems also accept
`problems=` and `split=`. A baseline is the mean reward of a random player with the default knobs.

An installed package adds its own environments through the entry-point group `rstar2_env.envs`, with a module (or a
function) that registers its ids with Gymnasium; they are available after `import rstar2_env`:

```toml
[project.entry-points."rstar2_env.envs"]
their-worlds = "their_package.worlds"
```

| id | task | knobs | random baseline |
|---|---|---|---|
"""


_EXPLOITS = """
## Rewards of exploits

The table lists mean rewards over 64 episodes, for three players: the environment's random player, the best exploit, and
the reference player, which knows the answer. The best exploit is the best of about thirty players that try to earn
reward without solving the problem ([validation.md](validation.md) lists them). Often, the best exploit is a guess:
compare it with the random player. `python tools/exploit_table.py` measures the table again.

"""


@dataclasses.dataclass(frozen=True, slots=True)
class Card:
    """The description of an environment.

    Attributes:
        env_id: Gymnasium id of the environment.
        line: Description in one line.
        knobs: The environment's own arguments with their defaults.
        baseline: Mean reward of a random player, as text that may add an explanation; "" if not stated.
        text: The whole docstring.
        sections: Text under each heading of the docstring.
        distribution: The distribution that registered the environment; "" for this package.
    """

    env_id: str
    line: str
    knobs: Mapping[str, Any]
    baseline: str
    text: str
    sections: Mapping[str, str]
    distribution: str = ""

    @property
    def knobs_text(self) -> str:
        """The environment's own arguments as text, written as in a call."""
        return ", ".join(f"{name}={value!r}" for name, value in self.knobs.items())

    @property
    def baseline_text(self) -> str:
        """The text of ``baseline`` before its first full stop or colon, without the explanation."""
        return re.split(r":\s|\.(?:\s|$)", " ".join(self.baseline.split()), maxsplit=1)[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the card as JSON values."""
        return {
            "what": self.line,
            "knobs": {name: value if _is_plain(value) else repr(value) for name, value in self.knobs.items()},
            "random_baseline": self.baseline,
            "distribution": self.distribution or "rstar2-env",
        }


def environment_ids() -> list[str]:
    """Return the ids of all environments of this package and of installed distributions, sorted."""
    return sorted(name for name, spec in gym.registry.items() if spec.namespace == "rstar2" or name in plugin_ids)


def card(env_id: str) -> Card:
    """Make the card of an environment.

    Args:
        env_id: A Gymnasium id or your own environment, as ``make_env`` takes it.

    Raises:
        UnknownNameError: There is no such environment, or it is one of Gymnasium's own, whose observations are not
            text.
        MissingExtraError: The environment needs an extra that is not installed.
        ConfigurationError: The user's code does not define the environment.
    """
    found = find_env(env_id)
    maker: Any = found.creator
    if found.env_id and found.env_id not in environment_ids() and str(maker.__module__).startswith("gymnasium."):
        raise UnknownNameError("environment", env_id, environment_ids())
    text = inspect.cleandoc(getattr(maker, "__doc__", None) or "")
    sections = _sections(text)
    return Card(
        env_id=env_id,
        line=text.partition("\n")[0],
        knobs=_knobs(maker),
        baseline=_baseline(maker, sections),
        text=text,
        sections=sections,
        distribution=plugin_ids.get(found.env_id, ""),
    )


def sample_episode(env_id: str, *, seed: int = 0) -> Episode:
    """Play one episode with the environment's ``oracle_turn`` if it has one, else with the agent ``oracle``.

    Args:
        env_id: Id of the environment.
        seed: Seed of the episode; later seeds are tried if the player cannot finish it.

    Raises:
        ConfigurationError: The player could not finish an episode with any of the tried seeds.
    """
    env = make_env(env_id)
    try:
        for tried in range(seed, seed + _SEEDS):
            with contextlib.suppress(_LostError):
                return play_episode(env, _Reference(env), seed=tried)
    finally:
        env.close()
    raise ConfigurationError(
        f"{env_id}: no reference player (a scripted player that knows the answer) finished an episode "
        f"with any of the seeds {seed} to {seed + _SEEDS - 1}. An environment with several turns per "
        "episode must provide its own reference player as the method oracle_turn()."
    )


def gallery() -> str:
    """Return the text of docs/environments.md: every environment of this package, with one episode of each."""
    cards = [card(env_id) for env_id in environment_ids() if env_id not in plugin_ids]
    rows = [
        f"| [`{each.env_id}`](#{_anchor(each.env_id)}) | {_cell(each.line)} | {_knob_cell(each)} | "
        f"{_cell(each.baseline_text) or '–'} |\n"
        for each in cards
    ]
    return _INTRODUCTION + "".join(rows) + _EXPLOITS + table(stored()) + "".join(_chapter(each) for each in cards)


def written(messages: list[Message], *, longest: int | None = None) -> str:
    """Format messages as Markdown: the role, and the text in a fence longer than any fence in the text.

    Args:
        messages: The messages.
        longest: Number of characters to which a text is shortened; ``None`` keeps whole texts.
    """
    parts = []
    for message in messages:
        text = message.content if longest is None else _shortened(message.content, longest)
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
        parts.append(f"**{message.role}**\n\n{fence}text\n{text.rstrip()}\n{fence}\n")
    return "\n".join(parts)


class _LostError(Exception):
    """The reference player cannot choose a next turn."""


class _Reference:
    """Plays like the agent ``oracle``, but reads the problem from the environment, which agents must not do."""

    def __init__(self, env: gym.Env[str, str]) -> None:
        self._env: Any = env.unwrapped
        agents = importlib.import_module("rstar2_env.agents")
        self._oracle = agents.make("oracle", dialect=getattr(self._env, "dialect", "rstar2"))
        self._left = _MOST_TURNS

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        problem, reference = getattr(self._env, "problem", None), reference_of(self._env)
        if problem is None and reference is None:
            raise _LostError
        self._oracle.reset(observation, info, seed=seed, problem=problem, reference=reference)

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        self._left -= 1
        if self._left < 0:
            raise _LostError
        try:
            return str(self._oracle.act(observation, info))
        except ConfigurationError as error:
            raise _LostError from error


def _chapter(each: Card) -> str:
    facts = [f"Knobs: `{each.knobs_text}`."] if each.knobs else []
    if difficulty := each.sections.get("Difficulty"):
        lists_knobs = difficulty.startswith("`")
        facts += [f"Knobs that set the difficulty, with default and range: {difficulty}" if lists_knobs else difficulty]
    if each.baseline:
        facts += [re.sub(r"^([0-9.]+)(?=:|$)", r"A random player earns \1 on average", each.baseline)]
    extra = EXTRA_OF.get(each.env_id)  # its episode depends on the version of the extra
    facts += [f"This environment needs the extra `{extra}`: `pip install 'rstar2-env[{extra}]'`."] if extra else []
    said = "\n\n".join(facts).replace("``", "`")
    head = f"\n## {each.env_id}\n\n{each.line}\n\n{said}{chr(10) if said else ''}"
    return head if extra else f"{head}{chr(10) if said else ''}{_played(sample_episode(each.env_id))}"


def _played(episode: Episode) -> str:
    """Format an episode as Markdown; a long one is shortened to its beginning and end."""
    messages = [message for message in episode.messages if message.role != "system"]
    left_out = len(messages) - _FIRST_MESSAGES - _LAST_MESSAGES
    first = messages if left_out <= 0 else messages[:_FIRST_MESSAGES]
    shown = written(first, longest=_LONGEST_MESSAGE)
    if left_out > 0:
        last = written(messages[-_LAST_MESSAGES:], longest=_LONGEST_MESSAGE)
        shown += f"\n*({left_out} of {len(messages)} messages omitted)*\n\n{last}"
    return f"{shown}\nReward {episode.reward:g}, `{episode.end}`.\n"


def _sections(text: str) -> dict[str, str]:
    body = re.split(r"^(?:Args|Raises|Returns|Attributes):$", text, maxsplit=1, flags=re.MULTILINE)[0]
    parts = re.split(r"^## (.+)$", body, flags=re.MULTILINE)
    return {title.strip(): content.strip() for title, content in zip(parts[1::2], parts[2::2], strict=True)}


def _knobs(maker: Any) -> dict[str, Any]:
    family = getattr(maker, "family_class", None)
    knobs = family.defaults() if family is not None else {}
    return knobs | {
        name: parameter.default
        for name, parameter in inspect.signature(maker).parameters.items()
        if (name not in _COMMON and parameter.default is not inspect.Parameter.empty)
        or (name == "problems" and isinstance(parameter.default, str))
    }


def _baseline(maker: Any, sections: Mapping[str, str]) -> str:
    said = next((text for title, text in sections.items() if "baseline" in title.lower()), "")
    stated = getattr(maker, "random_baseline", None)
    if stated is None or said.startswith(f"{stated:g}"):
        return said
    return f"{stated:g}: {said}" if said else f"{stated:g}"


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest].rstrip()}\n[... {len(text) - longest} characters more]"


def _anchor(env_id: str) -> str:
    return re.sub(r"[^a-z0-9-]", "", env_id.lower())


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("``", "`")


def _knob_cell(each: Card) -> str:
    return f"`{_cell(each.knobs_text)}`" if each.knobs else "–"

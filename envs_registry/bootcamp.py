"""``rstar2/Bootcamp-v0``: any object with InternBootcamp's protocol as an environment (F27)."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np

from rstar2_env.errors import ConfigurationError
from rstar2_env.options import call_with_options
from rstar2_env.problems import Draft, ProceduralSource
from rstar2_env.tools import Tool
from rstar2_env.vector_env import vector_entry_point

from ._adapted import AdaptedEnv, Grade

_DEFAULT = "rstar2_env.envs_registry._congruence:Congruence"


@runtime_checkable
class Bootcamp(Protocol):
    """InternBootcamp's protocol. ``reference(identity)`` and ``verify_score(text, identity)`` may come beside it.

    The instance must depend on the seed alone: a generator that draws from the global random state neither replays nor
    leaves that state as it was.
    """

    def case_generator(self, seed: int, /) -> Any:
        """The instance of a seed, as JSON can hold it."""
        ...

    def prompt_func(self, identity: Any, /) -> str:
        """What the policy reads, with how to write the answer."""
        ...

    def extract_output(self, text: str, /) -> Any:
        """The answer in a text, the last one of several, or ``None``."""
        ...

    def verify(self, answer: Any, identity: Any, /) -> bool:
        """Whether the answer solves the instance."""
        ...


@dataclass(frozen=True)
class _Draw:
    camp: Bootcamp

    def __call__(self, rng: np.random.Generator, /) -> Draft:
        identity = self.camp.case_generator(int(rng.integers(2**31)))
        try:
            key = json.dumps(identity, sort_keys=True, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"{type(self.camp).__name__}.case_generator must give what JSON can hold, but: {error}."
            ) from error
        reference = getattr(self.camp, "reference", None)
        answer = str(reference(identity)) if callable(reference) else ""
        return Draft(self.camp.prompt_func(identity), answer, key, {"identity": identity})


class BootcampEnv(AdaptedEnv):
    r"""One instance of a bootcamp, answered in one turn without a call.

    ## Action space
    Any string: the policy's whole turn, which the bootcamp's own ``extract_output`` reads.

    ## Observation space
    Any string: the bootcamp's prompt.

    ## Reward
    The bootcamp's ``verify_score(text, identity)``, or, where it has none, 1 if ``verify`` says so, else 0. ``correct``
    is what ``verify`` says. A verifier that raises on what the policy wrote earns 0, and ``verifier_error`` names it.

    ## Episode end
    ``terminated`` after the first turn without a call: ``answered``, or ``no_answer`` where ``extract_output`` gives
    ``None``. With ``tools``, turns with calls go on, as in ``rstar2/MathTool-v0``; so does ``truncated``.

    ## Information
    As in ``rstar2/MathTool-v0``; at the end ``verifier_error`` (an exception's class) where there was one.

    ## Difficulty
    That of the bootcamp. The bundled default is of linear congruences modulo at most ``largest=100``
    (``bootcamp_options``); a search earns 1.0.

    ## Random baseline
    0.08: in the bundled default, a random number below the modulus.

    ## Version history
    v0: the first.

    Args:
        bootcamp: The object, or where it is, as ``"package.module:name"``; a class is called with
            ``bootcamp_options``.
        bootcamp_options: Of a class given by name.
        split: "train", "validation" or "test"; a hash of the instance decides.
        tools: Tools that the policy may call on the way.
        **options: What ``ToolEnv`` takes: ``max_turns``, ``dialect``, ...

    Raises:
        ConfigurationError: There is no such object, or it lacks a method of the protocol.
    """

    random_baseline = 0.08

    def __init__(
        self,
        *,
        bootcamp: Bootcamp | str = _DEFAULT,
        bootcamp_options: Mapping[str, Any] | None = None,
        split: str = "train",
        tools: Sequence[Tool] = (),
        **options: Any,
    ) -> None:
        self.bootcamp = _load(bootcamp, bootcamp_options or {})
        if options.get("dialect", "rstar2") == "rstar2" and not tools:
            # A bootcamp's prompt says itself how the answer is written.
            options.setdefault("dialect_options", {"system": "", "instruction": "%s"})
        name = f"bootcamp/{type(self.bootcamp).__name__}"
        if bootcamp_options:
            name += ":" + ",".join(f"{key}={value}" for key, value in sorted(bootcamp_options.items()))
        source = ProceduralSource(name, _Draw(self.bootcamp), split)
        super().__init__(source, tools=tools, options=options)

    def grade(self, turn: str) -> Grade:
        """Have the bootcamp read and grade the turn."""
        identity = self.problem.meta.get("identity")
        answer = self.bootcamp.extract_output(turn)
        if answer is None:
            return Grade(None, 0.0, False)
        correct = bool(self.bootcamp.verify(answer, identity))
        scorer = getattr(self.bootcamp, "verify_score", None)
        score = float(scorer(turn, identity)) if callable(scorer) else float(correct)
        return Grade(str(answer), score, correct)


def _load(bootcamp: Bootcamp | str, options: Mapping[str, Any]) -> Bootcamp:
    found: Any = bootcamp
    if isinstance(bootcamp, str):
        module, colon, name = bootcamp.partition(":")
        try:
            found = getattr(importlib.import_module(module), name) if colon else None
        except (ImportError, AttributeError) as error:
            raise ConfigurationError(f"There is no bootcamp {bootcamp!r}: {error}.") from error
        if found is None:
            raise ConfigurationError(f'A bootcamp is named as "package.module:name", not {bootcamp!r}.')
        if isinstance(found, type):
            found = call_with_options(f"bootcamp {bootcamp!r}", found, options)
            options = {}
    if options:
        raise ConfigurationError("bootcamp_options go with a class given by name; pass an object that is made already.")
    if not isinstance(found, Bootcamp):
        needed = ("case_generator", "prompt_func", "extract_output", "verify")
        missing = ", ".join(name for name in needed if not hasattr(found, name))
        raise ConfigurationError(f"{found!r} lacks {missing} of InternBootcamp's protocol.")
    return found


gym.register(
    "rstar2/Bootcamp-v0",
    entry_point="rstar2_env.envs_registry.bootcamp:BootcampEnv",
    vector_entry_point=vector_entry_point("rstar2/Bootcamp-v0"),
)

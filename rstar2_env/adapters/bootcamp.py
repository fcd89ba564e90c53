"""InternBootcamp's protocol (arXiv 2508.08636): a bootcamp makes instances, writes their prompts and verifies answers.

Covered: the protocol, loading a bootcamp by name, a bootcamp's instances as problems. Not covered: the environment,
which is ``rstar2/Bootcamp-v0``.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rstar2_env.core import trust
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import call_with_options
from rstar2_env.problems import Draft, ProceduralSource


@runtime_checkable
class Bootcamp(Protocol):
    """InternBootcamp's protocol. ``reference(identity)`` and ``verify_score(text, identity)`` are optional.

    An instance must depend only on its seed: a bootcamp that draws from the global random state cannot be replayed, and
    changes that state.
    """

    def case_generator(self, seed: int, /) -> Any:
        """Return the instance of a seed, as a JSON-serializable value."""
        ...

    def prompt_func(self, identity: Any, /) -> str:
        """Return the prompt, including the answer format."""
        ...

    def extract_output(self, text: str, /) -> Any:
        """Return the last answer in a text, or ``None``."""
        ...

    def verify(self, answer: Any, identity: Any, /) -> bool:
        """Return whether the answer solves the instance."""
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
                f"{type(self.camp).__name__}.case_generator must return a value that can be written as JSON: {error}."
            ) from error
        reference = getattr(self.camp, "reference", None)
        answer = str(reference(identity)) if callable(reference) else ""
        return Draft(self.camp.prompt_func(identity), answer, key, {"identity": identity})


def instances(camp: Bootcamp, options: Mapping[str, Any], split: str) -> ProceduralSource:
    """Return a source whose problems are a bootcamp's instances; a hash of each instance decides its split.

    Args:
        camp: The bootcamp that generates and verifies instances.
        options: Arguments of the bootcamp's constructor; part of the problems' ids.
        split: "train", "validation" or "test".
    """
    name = f"bootcamp/{type(camp).__name__}"
    if options:
        name += ":" + ",".join(f"{key}={value}" for key, value in sorted(options.items()))
    return ProceduralSource(name, _Draw(camp), split)


def load_bootcamp(bootcamp: Bootcamp | type[Bootcamp] | str, options: Mapping[str, Any]) -> Bootcamp:
    """Return a bootcamp, made from its class or imported if necessary.

    Args:
        bootcamp: The object, its class, or the location of either as ``"package.module:name"``.
        options: Arguments of the class.

    Raises:
        ConfigurationError: There is no such object, it lacks a method of the protocol, or it rejects the options.
    """
    found: Any = bootcamp
    if isinstance(bootcamp, str):
        module, colon, name = bootcamp.partition(":")
        trust.check_code(bootcamp, None)
        try:
            found = getattr(importlib.import_module(module), name) if colon else None
        except (ImportError, AttributeError) as error:
            raise ConfigurationError(f"The bootcamp {bootcamp!r} cannot be found: {error}.") from error
        if found is None:
            raise ConfigurationError(
                f"The name of a bootcamp must have the form package.module:name; got {bootcamp!r}."
            )
    if isinstance(found, type):
        name = bootcamp if isinstance(bootcamp, str) else found.__name__
        found = call_with_options(f"bootcamp {name!r}", found, options)
    elif options:
        raise ConfigurationError(
            "bootcamp_options apply only to a bootcamp that is given by its class or name, and this bootcamp "
            "is an object: pass the options to its constructor."
        )
    if not isinstance(found, Bootcamp):
        needed = ("case_generator", "prompt_func", "extract_output", "verify")
        missing = ", ".join(name for name in needed if not hasattr(found, name))
        raise ConfigurationError(f"{found!r} does not have {missing}, which a bootcamp of InternBootcamp must have.")
    return found

"""The environments of all installed distributions, each with version, licence and the result of a short validation.

Covered: ids that the entry-point group ``rstar2_env.envs`` registered, ids of this package, and entry points that do
not load. Not covered: distributions that are not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

from rstar2_env.core.options.plugins import plugin_ids, points_without_ids
from rstar2_env.evaluation.cards import card, environment_ids
from rstar2_env.evaluation.validation import validate

OWN = "rstar2-env"
"""Name of the distribution of this package."""
EPISODES = 8
"""Number of problems of each environment that a short validation checks."""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One environment of an installed distribution, or an entry point that does not load.

    Attributes:
        env_id: Gymnasium id of the environment; for an entry point that does not load, the entry point's name.
        line: Description in one line.
        distribution: The distribution that registered the environment.
        version: Version of the distribution.
        licence: Licence as the distribution states it; "" if it does not state a licence.
        ok: Whether the validation passed; ``None`` if it was not run.
        validation: The result of the validation as text, or why it was not run.
    """

    env_id: str
    line: str
    distribution: str
    version: str
    licence: str
    ok: bool | None
    validation: str

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as JSON values."""
        return asdict(self)


def catalogue(*, check: bool = True, progress: Callable[[str], None] = lambda env_id: None) -> list[CatalogueEntry]:
    """Return the environments of all installed distributions; environments of this package come first.

    Args:
        check: Validate each environment of another distribution on a few problems. Environments of this package are
            checked by the package's tests.
        progress: Called with each id before it is validated.
    """
    found = []
    for env_id in sorted(environment_ids(), key=lambda each: (each in plugin_ids, plugin_ids.get(each, ""), each)):
        name = plugin_ids.get(env_id, OWN)
        ok: bool | None = None
        said = "by its own tests" if name == OWN else "not run"
        if check and name != OWN:
            progress(env_id)
            ok, said = _validated(env_id)
        found.append(CatalogueEntry(env_id, card(env_id).line, name, *_stated(name), ok, said))
    return [*found, *_without_ids()]


def _validated(env_id: str) -> tuple[bool, str]:
    try:
        result = validate(env_id, episodes=EPISODES)
    except Exception as error:
        # Another distribution's code may raise anything, and must not hide the other environments.
        return False, f"{type(error).__name__}: {error}"
    if result.ok:
        return True, f"{result.checked} problems and the contract passed"
    first = result.breaks or f"{result.faults[0].problem_id} ({result.faults[0].check}): {result.faults[0].detail}"
    return False, first


def _without_ids() -> Iterator[CatalogueEntry]:
    for point in points_without_ids:
        said = f"the entry point {point.value} does not register an environment"
        if point.fault:
            said = f"the entry point {point.value} cannot be loaded: {point.fault}"
        yield CatalogueEntry(point.name, "", point.distribution, *_stated(point.distribution), False, said)


def _stated(distribution: str) -> tuple[str, str]:
    """Return the version of a distribution, and the licence in its metadata."""
    found = metadata.metadata(distribution)
    classifiers = [
        each.rpartition(" :: ")[2] for each in found.get_all("Classifier") or () if each.startswith("License :: ")
    ]
    expression, text = ((found.get_all(field) or [""])[0] for field in ("License-Expression", "License"))
    licence = expression or ", ".join(classifiers) or text
    return str(found["Version"]), " ".join(licence.split("\n")[0].split())

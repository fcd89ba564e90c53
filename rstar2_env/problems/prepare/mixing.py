"""Mixes sources by weights, with each problem at most once.

``MixtureSource`` draws from its parts without end and with repetitions; this module chooses a finite set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems.problem import Problem


def shares_of(weights: Mapping[str, float], available: Mapping[str, int], total: int | None) -> dict[str, int]:
    """Return the number of problems that a mixture takes from each source.

    Args:
        weights: Weight of each source, above 0.
        available: Number of problems in each source.
        total: Number of problems in the mixture; ``None`` for the largest possible mixture with these weights.

    Returns:
        The number of problems from each source; the numbers add up to the total. Fractions are assigned by the largest
        remainder method.

    Raises:
        ConfigurationError: A weight is not above 0, or a source has too few problems.
    """
    if any(weight <= 0 for weight in weights.values()):
        raise ConfigurationError(
            f"The weights of the sources must be above 0, not {dict(weights)}: to leave a source out, remove it."
        )
    exact = {name: Fraction(weight) for name, weight in weights.items()}
    whole = sum(exact.values())
    if total is None:
        total = int(min(available[name] * whole / weight for name, weight in exact.items()))
    wanted = {name: total * weight / whole for name, weight in exact.items()}
    counts = {name: int(number) for name, number in wanted.items()}
    for name in sorted(wanted, key=lambda name: (counts[name] - wanted[name], name))[: total - sum(counts.values())]:
        counts[name] += 1
    short = {name: count for name, count in counts.items() if count > available[name]}
    if short:
        told = ", ".join(f"{count} from {name}, which has only {available[name]}" for name, count in short.items())
        raise ConfigurationError(
            f"A mixture of {total} problems with these weights needs {told}: lower the total, or the "
            "weights of these sources."
        )
    return counts


def mix(
    parts: Mapping[str, Sequence[Problem]], weights: Mapping[str, float], *, total: int | None = None, seed: int = 0
) -> list[Problem]:
    """Choose problems from each source by the weights, in random order.

    Args:
        parts: The problems of each source.
        weights: Weight of each source.
        total: Number of problems in the mixture; ``None`` for the largest mixture with these weights.
        seed: Seed of the choice and of the order. The order in which a source's problems are chosen depends only on the
            seed, and on the source's name and size.

    Raises:
        ConfigurationError: See ``shares_of``.
    """
    counts = shares_of(weights, {name: len(part) for name, part in parts.items()}, total)
    chosen: list[Problem] = []
    for name in sorted(parts):
        rng = np.random.default_rng([seed, *name.encode("utf-8")])
        chosen += [parts[name][int(at)] for at in rng.permutation(len(parts[name]))[: counts[name]]]
    order = np.random.default_rng([seed, len(chosen)]).permutation(len(chosen))
    return [chosen[int(at)] for at in order]

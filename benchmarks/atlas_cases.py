"""The cases of the atlas: each part alone and each recipe as a whole, in worlds and settings; and their figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from atlas_curves import AXES, NOTHING, SAMPLES
from atlas_update import LONGEST, REFERENCE, Expected, Setting, Updates, alone, rows_of
from atlas_world import (
    WORLDS,
    TabularPolicy,
    World,
    clean_success,
    expected_return,
    gradient,
    log_success,
    pass_at,
    regularised,
    token_divergence,
    token_entropy,
)
from torch import Tensor

from rstar2_env.core.errors import Rstar2Error
from rstar2_env.core.options.parts import read_part
from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.base import Recipe
from rstar2_env.trainers.options.slots import FIELDS

CASES: Mapping[str, tuple[str, Setting]] = {
    "base": ("base", Setting()),
    "equal lengths": ("equal lengths", Setting()),
    "rare success": ("rare", Setting()),
    "failing tool": ("failing", Setting()),
    "reliable tool": ("reliable", Setting()),
    "four turns": ("four turns", Setting()),
    "dense reward": ("dense", Setting()),
    "groups of 2": ("base", Setting(group_size=2)),
    "older weights": ("base", Setting(stale=0.6)),
    "hotter engine": ("base", Setting(temperature=1.3)),
    "demonstration": ("base", Setting(expert=True)),
    "groups of 8": ("base", Setting(group_size=8, samples=SAMPLES)),
    "groups of 16": ("base", Setting(group_size=16, samples=SAMPLES)),
    "one turn": ("one turn", Setting(samples=SAMPLES)),
    "three turns": ("three turns", Setting(samples=SAMPLES)),
    "seldom failing tool": ("seldom failing", Setting(samples=SAMPLES)),
    "1 update behind": ("base", Setting(behind=1, samples=SAMPLES)),
    "4 updates behind": ("base", Setting(behind=4, samples=SAMPLES)),
    "8 updates behind": ("base", Setting(behind=8, samples=SAMPLES)),
}
"""The world and the setting of each case."""
OF_FAMILY: Mapping[str, tuple[str, ...]] = {
    "advantage": ("base", "equal lengths", "rare success", "four turns", "dense reward", "groups of 2"),
    "aggregation": ("base", "equal lengths", "reliable tool", "failing tool", "groups of 2"),
    "loss": ("base", "older weights", "hotter engine", "demonstration"),
    "correction": ("base", "hotter engine"),
    "selector": ("base", "reliable tool", "failing tool"),
    "regularizer": ("base", "failing tool"),
    "recipe": ("base", "equal lengths", "rare success", "four turns", "dense reward", "older weights"),
    "repair": ("base", "dense reward", "groups of 2", "failing tool"),
}
"""The cases of each family."""
OTHER_POLICIES = (
    *("older weights", "hotter engine", "demonstration"),
    *("1 update behind", "4 updates behind", "8 updates behind"),
)
"""Cases whose episodes are not the policy's own."""
AIMS: Mapping[str, Mapping[str, Callable[[TabularPolicy, World, TabularPolicy], Tensor]]] = {
    "selector": {"clean success": lambda policy, world, _: clean_success(policy, world)},
    "regularizer": {
        "- KL of tokens": lambda policy, world, other: -token_divergence(policy, world, other),
        "- reverse KL of tokens": lambda policy, world, other: -token_divergence(policy, world, other, reverse=True),
        "- KL of episodes": lambda policy, world, other: (
            regularised(policy, world, other, 1.0) - expected_return(policy, world)
        ),
        "entropy of tokens": lambda policy, world, _: token_entropy(policy, world),
    },
}
"""Further objectives of a family, as functions of the policy, the world and the reference model."""
CURVED = ("advantage", "aggregation", "loss", "correction", "selector", "recipe")
"""Families that are computed along the axes."""
REGULARIZERS = (
    *(f"kl:estimator={one}" for one in ("k1", "k2", "k3", "k3+", "unbiased", "episode")),
    "kdrl",
    "opd",
    "entropy",
)
"""Terms of the loss that do not depend on rewards, and whose own objective is known."""
SLOTS = ("selector", "advantage", "loss", "aggregation", "correction")
VARIANTS: Mapping[str, tuple[str, ...]] = {
    "selector": ("roc:mode=rank", "roc:mode=weighted"),
    "advantage": (
        "gigpo:baseline=others,gamma=1",
        "igpo:baseline=group",
        "igpo:normalize=false",
        "opo:baseline=others",
        "optimal_token_baseline:baseline=others",
    ),
}
"""Further forms of parts, by slot, each with the options that make it."""
REPAIRS: tuple[tuple[str, ...], ...] = (
    ("aggregation",),
    ("advantage",),
    ("selector",),
    ("advantage", "aggregation"),
    ("selector", "advantage", "aggregation"),
    ("advantage", "aggregation", "loss"),
)
"""Slots whose parts are replaced together, in this order, until the update of a recipe is parallel to the gradient."""
CONSTANT = "const_len:length=1"
UNBIASED: Mapping[str, str] = {one.partition(":")[0]: one for one in VARIANTS["advantage"] if "baseline=others" in one}
"""Unbiased form of an advantage by its name; the others are replaced by ``rloo``."""
PARALLEL = 1e-14
"""Smallest 1 - cosine that counts as a bias, if all groups are listed: rounding is below it, and no term is."""
OVERSAMPLE = "rollout.oversample"
_OWN_OBJECTIVE = ("kl", "kdrl", "opd", "entropy", "adaptive_entropy", "apo_dads", "carft")
"""Terms of the loss whose objective is not the return."""


@dataclass(frozen=True)
class Case:
    """One row of the record; a case on an axis alone has only the objective of the return.

    Attributes:
        family: The slot of a part, ``recipe``, or ``repair``.
        name: Name of the part, of the recipe, or of the recipe and its replacements.
        recipe: The recipe to compute.
        case: Name in ``CASES``.
    """

    family: str
    name: str
    recipe: Recipe
    case: str

    @property
    def key(self) -> str:
        """Identifies the case in the record."""
        return f"{self.family}/{self.name}/{self.case}"

    def figures(self) -> dict[str, Any]:
        """Compute the case; a recipe that cannot work with listed episodes has ``reason``."""
        world, setting = CASES[self.case]
        found: dict[str, Any] = {"family": self.family, "name": self.name, "case": self.case}
        try:
            updates = Updates(self.recipe, WORLDS[world], setting)
            expected = updates.expected()
        except Rstar2Error as error:
            return {**found, "reason": str(error)}
        figures = compare(updates, expected, self.family)
        if self.case not in OF_FAMILY.get(self.family, ("base",)):
            figures |= {name: {"return": figures[name]["return"]} for name in ("cosines", "scales")}
        return {**found, "listed": updates.lists, **figures}


def compare(updates: Updates, expected: Expected, family: str = "") -> dict[str, Any]:
    """Return the cosines of an expected update to the gradients of objectives, its scale and its variance.

    The objectives are the same for all families, and those of the family in ``AIMS``.

    ``scales`` are the lengths of the update along the gradients, divided by the gradients' lengths.
    ``noise`` is the variance of the update of one group, times the episodes of a group, divided by the squared length
    of the expected update. ``within`` is the standard error of the cosine, from blocks of sampled groups.
    """
    policy, world = updates.policy, updates.world
    reference = TabularPolicy(world, REFERENCE)
    objectives = {
        "return": expected_return(policy, world),
        "pass at 4": pass_at(4, policy, world),
        "log success": log_success(policy, world),
        "return - KL": regularised(policy, world, reference, _kl_coef(updates)),
        **{name: make(policy, world, reference) for name, make in AIMS.get(family, {}).items()},
    }
    gradients = {name: gradient(value, policy) for name, value in objectives.items()}
    own, true = expected.update, gradients["return"]
    length = float(own.norm())
    found: dict[str, Any] = {"cosines": {name: cosine(own, one) for name, one in gradients.items()}, "length": length}
    found["scales"] = {name: float((own * one).sum() / (one**2).sum()) for name, one in gradients.items()}
    found["noise"] = expected.variance * updates.setting.group_size / length**2 if length > 0 else None
    if expected.blocks is not None:
        rest = expected.blocks.sum(0)[None] - expected.blocks  # each without one block
        left = torch.tensor([cosine(one, true) for one in rest])
        found["within"] = float(((left - left.mean()) ** 2).sum().mul((len(left) - 1) / len(left)).sqrt())
    return found


def cosine(first: Tensor, second: Tensor) -> float:
    """Return the cosine of two tables; 0 if one of them is 0."""
    lengths = float(first.norm() * second.norm())
    return float((first * second).sum()) / lengths if lengths > 0 else 0.0


def signature(recipe: Recipe) -> str:
    """Return the parts of a recipe that decide its update, as text; equal for recipes with the same update."""
    parts = recipe.configure({"model": "m", "max_episode_tokens": LONGEST}).parts
    return " ".join(map(str, [*rows_of(recipe), *parts.loss, parts.aggregation, parts.correction]))


def part_cases() -> Iterator[Case]:
    """Yield the cases of all parts, each alone in a recipe of unbiased parts."""
    for slot in SLOTS:
        for name in (*FIELDS[slot].names(), *VARIANTS.get(slot, ())):
            more = {"defaults": {"rollout": {"oversample": 2}}} if slot == "selector" else {}
            for case in OF_FAMILY[slot]:
                yield Case(slot, name, alone(slot, name, **more), case)
    for name in REGULARIZERS:
        for case in OF_FAMILY["regularizer"]:
            yield Case("regularizer", name, alone("loss", name), case)


def recipe_cases() -> Iterator[Case]:
    """Yield the cases of all recipes; recipes with the same parts are computed once, under the first name."""
    seen: set[str] = set()
    for name in TRAINERS.names():
        recipe = TRAINERS.get(name)
        if (parts := signature(recipe)) not in seen:
            seen.add(parts)
            for case in OF_FAMILY["recipe"]:
                yield Case("recipe", name, recipe, case)


def curve_cases() -> Iterator[Case]:
    """Yield the cases of the axes for all parts and recipes, without those in ``OF_FAMILY``."""
    on_axes = dict.fromkeys(case for values in AXES.values() for case in values.values())
    for one in [*part_cases(), *recipe_cases()]:
        if one.case == "base" and one.family in CURVED:
            yield from (replace(one, case=case) for case in on_axes if case not in OF_FAMILY[one.family])


def repairs(recipe: Recipe) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the replacements to try for a recipe, each with the objective that the update must then follow.

    A term of the loss that moves the policy to a reference model has an objective of its own. So without such terms the
    objective is the return; with the estimator of ``kl`` that counts whole episodes, it is the return minus the
    divergence. A selector that keeps all episodes needs no further ones.
    """
    config = recipe.configure({"model": "m"})
    terms = [read_part(term, "loss") for term in recipe.loss]
    kept = tuple(str(part) for part in terms if part.name not in _OWN_OBJECTIVE)
    forms = {
        "aggregation": CONSTANT,
        "advantage": UNBIASED.get(config.parts.advantage.name, "rloo"),
        "selector": "all",
        "loss": kept,
    }
    plain = {"selector": "all", **({OVERSAMPLE: "1"} if config.rollout.oversample > 1 else {})}
    for slots in REPAIRS:
        if "loss" not in slots or 0 < len(kept) < len(terms):
            yield "return", {**(plain if "selector" in slots else {}), **{slot: forms[slot] for slot in slots}}
    if any(part.name == "kl" for part in terms):
        exact = tuple(
            str(replace(part, options={**part.options, "estimator": "episode"})) if part.name == "kl" else str(part)
            for part in terms
            if part.name not in _OWN_OBJECTIVE or part.name == "kl"
        )
        swaps = {"advantage": "rloo", "aggregation": CONSTANT, "loss": exact}  # scale 1, as the term
        yield "return - KL", swaps
        yield "return - KL", {**plain, **swaps}  # a rejected group has no divergence either


def repaired_recipe(recipe: Recipe, swaps: Mapping[str, Any]) -> Recipe:
    """Return a recipe with replaced parts, and one of ``OVERSAMPLE`` if it is named."""
    parts = {slot: part for slot, part in swaps.items() if slot != OVERSAMPLE}
    if OVERSAMPLE not in swaps:
        return replace(recipe, **parts)
    rollout = {**recipe.defaults.get("rollout", {}), "oversample": int(swaps[OVERSAMPLE])}
    return replace(recipe, **parts, defaults={**recipe.defaults, "rollout": rollout})


def repair_cases(record: Mapping[str, Mapping[str, Any]]) -> Iterator[Case]:
    """Yield the next case of a replacement to try for each objective of a biased recipe that no recorded one follows.

    A replacement is tried in the next case only if it follows the objective in those before it.
    """
    for case in recipe_cases():
        if case.case != "base" or not is_biased(record, case.name):
            continue
        done: set[str] = set()
        for objective, swaps in repairs(case.recipe):
            if objective in done:
                continue
            name = f"{case.name} with {words(swaps)}"
            if missing := missing_case(record, name, objective):
                yield Case("repair", name, repaired_recipe(case.recipe, swaps), missing)
                break
            if follows(record, name, objective):
                done.add(objective)


def missing_case(record: Mapping[str, Mapping[str, Any]], name: str, objective: str) -> str:
    """Return the first case of a repaired recipe that is not recorded; empty if one before it settles the question."""
    for case in OF_FAMILY["repair"]:
        found = record.get(f"repair/{name}/{case}")
        if found is None:
            return case
        if not is_shown_parallel(found, objective):
            return ""
    return ""


def follows(record: Mapping[str, Mapping[str, Any]], name: str, objective: str) -> bool:
    """Return whether a repaired recipe follows the gradient of an objective in each case of ``repair``."""
    found = [record.get(f"repair/{name}/{case}") for case in OF_FAMILY["repair"]]
    return all(one is not None and is_shown_parallel(one, objective) for one in found)


def is_biased(record: Mapping[str, Mapping[str, Any]], name: str) -> bool:
    """Return whether a recipe's update on the policy's own episodes has another direction than the gradient."""
    found = [record.get(f"recipe/{name}/{case}", {}) for case in CASES if case not in OTHER_POLICIES]
    return any("cosines" in one and one["length"] >= NOTHING and not is_parallel(one) for one in found)


def words(swaps: Mapping[str, Any]) -> str:
    """Return replacements as options."""
    return " ".join(f"{slot}={part if isinstance(part, str) else '+'.join(part)}" for slot, part in swaps.items())


def is_parallel(found: Mapping[str, Any], objective: str = "return") -> bool:
    """Return whether an update has the direction of a gradient: exactly, or within three standard errors."""
    if "cosines" not in found:
        return False
    return 1 - found["cosines"][objective] < max(PARALLEL, 3 * found.get("within", 0.0))


def is_shown_parallel(found: Mapping[str, Any], objective: str = "return") -> bool:
    """Return whether all groups were listed and the update is parallel; an interval always leaves room for a bias."""
    return "within" not in found and is_parallel(found, objective)


def _kl_coef(updates: Updates) -> float:
    named = zip(updates.parts.term_names, updates.parts.terms, strict=True)
    return sum(float(getattr(term, "coef", 0.0)) for name, term in named if name == "kl")

"""Write the pages of docs/trainers/, one per family of parts, from the registries and the docstrings of the parts.

``python tools/docs_site/part_pages.py docs/trainers`` writes all pages. The section of a part has the docstring of its
class (formula and explanation), its source, its file, the recipes that use it, and its options. Parts of other
distributions are omitted.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from docstrings import words_of

from rstar2_env.core.options.parts import Part
from rstar2_env.core.options.rules import in_words, says_nothing
from rstar2_env.core.options.targets import Parameter, options_of
from rstar2_env.rewards.base import Need, needs_of
from rstar2_env.rewards.needs import PLACES
from rstar2_env.trainers.base import TRAINERS, Recipe
from rstar2_env.trainers.options.config import LISTS
from rstar2_env.trainers.options.layers import read_slot
from rstar2_env.trainers.options.slots import FIELDS, GIVEN, part_info

RECIPES = "recipes.md"
INDEX = "parts.md"
_OURS = "rstar2_env."
_MADE = "<!-- Made by `python tools/docs_site/part_pages.py docs/trainers`. Change the docstrings instead. -->"
_PAPER = re.compile(r"arXiv[: ](\d{4}\.\d{4,5})")


@dataclass(frozen=True, slots=True)
class Family:
    """A page of parts.

    Attributes:
        file: Its name.
        slot: The field of ``parts`` that names them.
        title: Its heading.
        about: Purpose of the parts and their common properties, in Markdown.
    """

    file: str
    slot: str
    title: str
    about: str


FAMILIES = (
    Family(
        "rollouts.md",
        "rollout",
        "Rollouts",
        "A rollout plays the episodes of each group, and can convert an episode to several training rows. "
        "[part-interfaces.md](../part-interfaces.md#a-rollout) describes the contract, and [rollout.md](../rollout.md) "
        "the player that the rollout uses.",
    ),
    Family(
        "rewards.md",
        "reward",
        "Rewards",
        "The reward of an episode is the sum of the scores of its components. In addition to its own options, every "
        "component has `weight` (a factor), `gate` (`always`, or only in `correct` or `wrong` episodes), `clip` "
        "(lowest and highest value before the weight), `label` (its name in the metrics) and `judge` (the model that "
        "it queries instead of `rollout.judge`). Most components also work inside an environment "
        "([wrappers.md](../wrappers.md)) and as scores of an evaluation ([evaluation.md](../evaluation.md)). The "
        "second table lists where each component works, which depends on its needs.",
    ),
    Family(
        "selectors.md",
        "selector",
        "Selectors",
        "A selector chooses the episodes of a group to train on, after their rewards are known. It can reject a whole "
        "group, which `rollout.refill` then replaces.",
    ),
    Family(
        "advantages.md",
        "advantage",
        "Advantages",
        "An advantage estimates by how much an episode, or each of its tokens, is better than expected. In the "
        "formulas, $r$ is the reward of an episode, and mean and std are those of the rewards of its group unless "
        "the text names other values.",
    ),
    Family(
        "losses.md",
        "loss",
        "Terms of the loss",
        "The loss is the sum of its terms. [loss-computation.md](../loss-computation.md) explains how terms, "
        "aggregation and correction are combined, with numerical examples. In the formulas, $\\pi$ is the policy, "
        "$\\pi_\\text{old}$ the policy at the time of sampling, $\\mu$ the distribution of the engine that sampled the "
        "tokens, and $A$ the advantage.",
    ),
    Family(
        "aggregations.md",
        "aggregation",
        "Aggregations",
        "An aggregation defines the mean over the tokens of an optimizer step: the weight of each token in the loss, "
        "over the rows of all processes.",
    ),
    Family(
        "corrections.md",
        "correction",
        "Corrections",
        "A correction computes weights, without a gradient, that correct for differences between the probabilities "
        "of the engine and of the trainer. The default `auto` is `truncate` if the engine has its own copy of the "
        "weights, and `none` if it uses the trainer's weights. A ratio is the trainer's probability divided by the "
        "engine's probability, for a token, a turn or a sequence.",
    ),
    Family(
        "samplers.md",
        "sampler",
        "Samplers",
        "A sampler chooses the problems of a step. It receives the results of the groups of all processes, and its "
        "state is saved in every checkpoint.",
    ),
    Family(
        "hooks.md",
        "hook",
        "Hooks",
        "Hooks are callbacks that change a run between its steps: they set limits, the temperature and coefficients of "
        "the loss, reset the reference model and the optimizer, or take SFT steps. The changes of hooks are saved in "
        "every checkpoint.",
    ),
)


def pages() -> dict[str, str]:
    """Return every page by the name of its file."""
    recipes = _recipes()
    made = {family.file: _family(family, recipes) for family in FAMILIES}
    return {INDEX: _index(recipes), RECIPES: _recipe_page(recipes), **made}


def own_parts(slot: str) -> dict[str, Callable[..., Any]]:
    """Return the parts of a slot that this distribution contains, by name."""
    found = {name: FIELDS[slot].get(name) for name in FIELDS[slot]}
    return {name: part for name, part in found.items() if part.__module__.startswith(_OURS)}


def _recipes() -> dict[str, tuple[Recipe, Any]]:
    """Return the recipes of this distribution, each with its module, whose docstring explains the recipe."""
    folder = importlib.import_module(f"{_OURS}trainers.recipes")
    files = {path.stem for path in Path(str(folder.__path__[0])).glob("[a-z]*.py")}
    return {name: (TRAINERS.get(name), sys.modules[f"{folder.__name__}.{name}"]) for name in TRAINERS if name in files}


def _index(recipes: Mapping[str, tuple[Recipe, Any]]) -> str:
    """Return the page that lists the parts of each slot with their number."""
    rows, total = [], 0
    for family in FAMILIES:
        names = list(own_parts(family.slot))
        total += len(names)
        linked = ", ".join(f"[`{name}`]({family.file}#{name})" for name in names)
        rows.append([f"`{family.slot}`", f"[{family.title}]({family.file})", str(len(names)), linked])
    rows.append(["", "all slots", str(total), ""])
    told = (
        f"{len(recipes)} [recipes]({RECIPES}) choose among {total} parts of {len(FAMILIES)} slots. "
        "[systems.md](../systems.md) lists the published systems that they implement, each with its test."
    )
    return "\n\n".join([_MADE, "# Parts by slot", told, _table(["slot", "page", "number", "parts"], rows)]) + "\n"


def _family(family: Family, recipes: Mapping[str, tuple[Recipe, Any]]) -> str:
    rows, sections = [], []
    for name, made_by in own_parts(family.slot).items():
        words, info = words_of(made_by), part_info(name, made_by, given=GIVEN.get(family.slot, ()))
        paper = f" ({info.paper})" if info.paper and info.paper not in words.summary else ""
        rows.append([f"[`{name}`](#{name})", _cell(words.summary.removesuffix(".") + paper)])
        named = [known for known, (recipe, _) in recipes.items() if name in _names(recipe, family.slot)]
        facts = [f"Source: {_linked(info.paper)}."] if info.paper else []
        facts.append(f"File: {_file(made_by.__module__)}.")
        if named:
            facts.append(f"Recipes: {', '.join(f'[`{one}`]({RECIPES}#{one})' for one in named)}.")
        told = [_prose(words.summary), _prose(words.text), " ".join(facts), _options(info.options, words.meanings)]
        sections += [f"## `{name}`", *filter(None, told)]
    listed = _table(["part", "description"], rows)
    head = [_MADE, f"# {family.title}", f"{family.about}", _named_so(family.slot), listed]
    head += [_places()] if family.slot == "reward" else []
    return "\n\n".join([*head, *sections]) + "\n"


def _places() -> str:
    """Return the table of the places where each reward component works, which depend on its needs and options."""
    rows = [
        [f"`{written}`", ", ".join(f"`{need}`" for need in sorted(needs)) or "none"]
        + ["yes" if needs <= offered else "no" for offered in PLACES.values()]
        for name, made_by in own_parts("reward").items()
        for written, needs in _needs(name, made_by).items()
    ]
    return _table(["part", "needs", "wrapper", "evaluation of agents", "evaluation of models", "training"], rows)


def _needs(name: str, made_by: Callable[..., Any]) -> dict[str, frozenset[Need]]:
    """Return the needs of a component with its defaults, and with each choice of an option that changes them."""
    options = options_of(made_by).parameters.values()
    required: dict[str, Any] = {one.name: 1 for one in options if one.required}
    found = {name: needs_of(made_by(**required))}
    for one in options:
        for choice in get_args(one.hint) if get_origin(one.hint) is Literal else ():
            needs = needs_of(made_by(**{**required, one.name: choice}))
            if needs not in found.values():
                found[f"{name}:{one.name}={choice}"] = needs
    return found


def _named_so(slot: str) -> str:
    if slot in LISTS:
        return (
            f"`--set {slot}=NAME+NAME:OPTION=VALUE` sets all parts of the slot. `--set {slot}.NAME.OPTION=VALUE` "
            "sets an option of one part; a part that the slot lacks is added."
        )
    key = "parts.rollout" if slot == "rollout" else slot
    return (
        f"`--set {key}=NAME` or `--set {key}=NAME:OPTION=VALUE` selects the part, and `--set {key}.OPTION=VALUE` "
        "changes an option of it."
    )


def _recipe_page(recipes: Mapping[str, tuple[Recipe, Any]]) -> str:
    rows, sections = [], []
    for name, (recipe, module) in recipes.items():
        words = words_of(module)
        rows.append([f"[`{name}`](#{name})", _cell(recipe.summary), _linked(recipe.paper)])
        facts = [f"Paper: {_linked(recipe.paper)}."] if recipe.paper else []
        facts.append(_comparison(recipe))
        facts.append(f"File: {_file(module.__name__)}.")
        told = [
            f"{_cell(recipe.summary)}.",
            _prose(words.text),
            " ".join(filter(None, facts)),
            _table(["option", "value"], _says(recipe)),
        ]
        sections += [f"## `{name}`", *filter(None, told)]
    *others, last = (f"`{name}`" for slot in FIELDS for name in _names(Recipe(""), slot))
    head = [
        _MADE,
        "# Recipes",
        f"A recipe names one part for each slot, and defaults of the run. If a recipe does not name a part, it uses "
        f"{', '.join(others)} and {last}. `rstar2 list trainers NAME` prints a recipe with all options. Sizes "
        "(problems, episodes, tokens) that a recipe does not set are the defaults of the run, not the values "
        "of the paper.",
        "Each section names the text or code with which the recipe was compared, and the date. A source "
        "`OWNER/NAME@COMMIT` is a repository on GitHub.",
        _table(["recipe", "description", "paper"], rows),
    ]
    return "\n\n".join([*head, *sections]) + "\n"


def _comparison(recipe: Recipe) -> str:
    """Return the sentence about the recipe's comparison with its source."""
    return f"Compared on {recipe.checked} with {_linked(recipe.source)}."


def _says(recipe: Recipe) -> list[list[str]]:
    """Return the parts of a recipe that differ from those of an empty recipe, and its defaults of the run."""
    empty = Recipe("")
    rows = []
    for slot in FIELDS:
        written, plain = _parts(recipe, slot), _parts(empty, slot)
        if [(part.name, part.options) for part in written] != [(part.name, part.options) for part in plain]:
            page = next(family.file for family in FAMILIES if family.slot == slot)
            linked = [f"[`{part.name}`]({page}#{part.name}){_given(part)}" for part in written]
            rows.append([f"`parts.{slot}`", ", ".join(linked)])
    for group, options in recipe.defaults.items():
        rows += [[f"`{group}.{name}`", f"`{json.dumps(value)}`"] for name, value in options.items()]
    return rows


def _given(part: Part) -> str:
    options = str(Part("", part.options)).removeprefix(":")
    return f" `{options}`" if options else ""


def _parts(recipe: Recipe, slot: str) -> list[Part]:
    found = read_slot(slot, getattr(recipe, slot))
    return list(found) if slot in LISTS else [found]


def _names(recipe: Recipe, slot: str) -> list[str]:
    return [part.name for part in _parts(recipe, slot)]


def _options(options: Iterable[Parameter], meanings: Mapping[str, str]) -> str:
    rows = []
    for one in options:
        values = "" if says_nothing(one.hint) else in_words(one.hint, one.rule)
        default = "required" if one.required else f"`{one.default!r}`"
        rows.append([f"`{one.name}`", default, _cell(values), _cell(meanings.get(one.name, ""))])
    return _table(["option", "default", "values", "what it is"], rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


def _prose(text: str) -> str:
    """Return a docstring's text as Markdown, with links to papers; indented lines do not change."""
    return _linked(re.sub(r"::$", ":", text.replace("``", "`"), flags=re.MULTILINE))


def _linked(text: str) -> str:
    return _PAPER.sub(lambda found: f"[arXiv {found[1]}](https://arxiv.org/abs/{found[1]})", text)


def _cell(text: str) -> str:
    return _linked(text.replace("|", "\\|").replace("``", "`"))


def _file(module: str) -> str:
    """Return a link from a page in docs/trainers to a module of this distribution."""
    path = module.removeprefix(_OURS).replace(".", "/") + ".py"
    path = path if path.startswith("trainers/") else f"rstar2_env/{path}"
    return f"[{path}](../../{path})"


def main() -> None:
    """Write the pages into the folder given on the command line."""
    parser = argparse.ArgumentParser(
        prog="python tools/docs_site/part_pages.py", description="Write the pages of parts."
    )
    parser.add_argument("folder", type=Path, help="where they go: docs/trainers")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for file, page in pages().items():
        (folder / file).write_text(page, "utf-8")


if __name__ == "__main__":
    main()

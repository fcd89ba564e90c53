"""docs/systems.md: every part and recipe is there, is made as it is written, and has the test it names."""

from __future__ import annotations

import re

import gymnasium
import pytest
import systems_table
from part_pages import own_parts
from places import DOCS, ROOT
from said import said

from rstar2_env.agents.base import AGENTS
from rstar2_env.cli._options import layers_of
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rewards import RewardContext
from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.base import Recipe
from rstar2_env.trainers.options.layers import read_slot
from rstar2_env.trainers.options.parts import make_parts
from rstar2_env.trainers.options.slots import FIELDS
from rstar2_env.trainers.pipeline.file import read_pipeline

PAGE = (DOCS / "systems.md").read_text("utf-8")
SYSTEMS, _, REST = PAGE.partition("\n## Recipes\n")
RECIPES, _, REST = REST.partition("\n## Pipelines\n")
PIPELINES, _, OTHERS = REST.partition("\n## Agents and environments\n")
LEFT_OUT = {
    "rollout": {"plain"},
    "reward": {"answer_format", "return"},
    "hook": {"diagnosis", "token_budget", "until"},
}
"""Parts that are no published system."""


def rows(text):
    """The cells of the tables of a text, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("| ") and "](../" in line]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines]


def target(cell):
    """The file of a link, below the repository."""
    return re.fullmatch(r"\[([^]]+)\]\(\.\./\1\)", cell)[1]


def parts_of_row(written):
    """The slot that a row is about, and the names of its parts; nothing where it is an option of the run."""
    slot, _, value = written.removeprefix("parts.").partition("=")
    if slot not in FIELDS:
        return slot, []
    found = read_slot(slot, value)
    return slot, [part.name for part in (found if isinstance(found, list) else [found])]


ROWS = rows(SYSTEMS)


def faults_of(row):
    """Yield what is wrong with a row: its options or its test."""
    _, written, test = row
    written = written.strip("`")
    TRAINERS.get("grpo").configure({"model": "m"}, *layers_of([written]))
    slot, names = parts_of_row(written)
    text = (ROOT / target(test)).read_text("utf-8")
    if names:
        made_by = FIELDS[slot].get(names[-1])
        if not re.search(rf"\b({names[-1]}|{made_by.__name__})\b", text):
            yield "the test does not name the part"


def test_every_system_is_made_as_it_is_written_and_has_the_test_it_names():
    assert {row[0]: found for row in ROWS if (found := [*faults_of(row)])} == {}


LESS = {
    "Linear length penalty (prime-rl)": "only the penalty, which is added to a reward",
    "Exploration (RLSP)": "a price on reasoning that is short",
    "Router by domain (Guru)": "scores mixtures alone",
}
"""Rewards under which a right answer may earn less than 1, and why."""


def components_of(row):
    """The components of a reward."""
    config = TRAINERS.get("grpo").configure({"model": "m"}, *layers_of([row[1].strip("`")]))
    return make_parts(config, shares_weights=True).rewards


def scores_alone(row):
    """Whether a reward looks at nothing but episodes."""
    return not any(component.needs & {"judge", "lm", "play", "problem"} for component in components_of(row))


REWARDS = [row for row in ROWS if row[1].startswith("`reward=") and row[0] not in LESS and scores_alone(row)]


def test_a_right_answer_in_one_short_turn_earns_at_least_1():
    right = said(
        "It is 4.", correct=True, reward=1.0, end="answered", prompt_ids=[1], completion_ids=[7] * 4, mask=[1] * 4
    )
    context = RewardContext(group=[right])
    earned = {row[0]: sum(one.value(right, context) for one in components_of(row)) for row in REWARDS}
    assert {name: reward for name, reward in earned.items() if not reward > 0.999} == {}


def test_every_part_is_there():
    shown = {}
    for row in ROWS:
        slot, names = parts_of_row(row[1].strip("`"))
        shown.setdefault(slot, set()).update(names)
    for slot in FIELDS:
        assert set(own_parts(slot)) - shown.get(slot, set()) - LEFT_OUT.get(slot, set()) == set(), slot


def test_every_recipe_is_there_with_its_second_source_and_a_test_that_names_it():
    assert systems_table.with_table(PAGE) == PAGE, "run: python tools/docs_site/systems_table.py docs/systems.md"
    listed = {row[0].strip("`"): row[1:] for row in rows(RECIPES)}
    assert list(listed) == sorted(path.stem for path in (ROOT / "trainers/recipes").glob("[a-z]*.py"))
    for name, (test, source, date) in listed.items():
        assert f'"{name}"' in (ROOT / target(test)).read_text("utf-8"), name
        assert re.search(r"\S+/\S+@[0-9a-f]{7}|\(text only: .+\)$", source), name
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", date), name


def test_a_recipe_that_no_test_names_is_refused():
    texts = {"test_a.py": '"one"', "test_b.py": '"one" "one"'}
    assert systems_table.test_of("one", texts) == "test_b.py"
    with pytest.raises(ConfigurationError, match="names the recipe 'other'"):
        systems_table.test_of("other", texts)


def test_a_recipe_without_released_code_says_why(monkeypatch):
    def shown(source):
        monkeypatch.setattr(systems_table.TRAINERS, "get", lambda name: Recipe(name=name, source=source))
        return systems_table.second_source("one")[0]

    none, unread = "no released code was found on 2026-11-30", "some/where could not be read on 2026-11-30"
    assert shown(f"arXiv 2501.00001, by hand; {none}") == f"arXiv 2501.00001 (text only: {none})"
    written = f"arXiv 2501.00001; the released code, {unread.replace(' could', ', could')}"
    assert shown(written) == f"arXiv 2501.00001 (text only: {unread})"
    assert shown("arXiv 2501.00001; some/where@1234567") == "arXiv 2501.00001, some/where@1234567"
    for without_reason in ("arXiv 2501.00001, section 2", "arXiv 2501.00001; no released code was found"):
        with pytest.raises(ConfigurationError, match="names no commit"):
            shown(without_reason)


def test_every_pipeline_has_its_source_its_file_and_a_test_that_runs_it():
    listed = {row[0].strip("`"): row[1:] for row in rows(PIPELINES)}
    assert list(listed) == ["expert_iteration", "ra3", "relift", "totrl"]
    for name, (source, file, test, second) in listed.items():
        assert target(file) == f"pipelines/{name}.yaml"
        assert read_pipeline(ROOT / target(file)).paper == source
        assert re.search(r"^(\S+/\S+@[0-9a-f]{7}, |text only: ).* compared on \d{4}-\d\d-\d\d$", second), name
        if second.startswith("text only"):
            assert f'"{name}"' in (ROOT / "tests/trainers/recipes/test_by_hand.py").read_text("utf-8"), name
        assert f'find_pipeline("{name}")' in (ROOT / target(test)).read_text("utf-8"), name


def test_every_agent_and_environment_of_a_system_is_there_with_a_second_source_and_its_test():
    listed = rows(OTHERS)
    assert len(listed) == 7
    for system, here, test, second, date in listed:
        assert (ROOT / target(test)).is_file(), system
        assert re.search(r"^\S+/\S+@[0-9a-f]{7}, |^paper; ", second), system
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", date), system
        for name in re.findall(r"`([^`]+)`", here):
            known = gymnasium.spec(name) if "/" in name else AGENTS.get(name)
            assert known, name

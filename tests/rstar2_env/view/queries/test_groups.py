"""Groups of every selector: who was kept, who was not, why, by which numbers, and in which round."""

from __future__ import annotations

import pytest
from page_words import page_words
from selected_runs import SELECTED, write_selected

from rstar2_env.core.run_folder import read_run
from rstar2_env.trainers.selectors.base import SELECTORS
from rstar2_env.view.index import RunIndex
from rstar2_env.view.queries.figures import figures_by_step
from rstar2_env.view.queries.groups import find_group, list_groups


@pytest.fixture(scope="module", params=SELECTORS.names())
def chosen(request, tmp_path_factory):
    """The selector, its run, and the index of it."""
    base = tmp_path_factory.mktemp(request.param)
    write_selected(base / "run", request.param)
    with RunIndex(base / "run", base / "cache") as index:
        assert index.refresh()
        yield SELECTED[request.param], read_run(base / "run"), index


def test_a_group_tells_of_each_episode_what_became_of_it_why_and_by_which_numbers(chosen):
    how, run, index = chosen
    reasons, names = set(), set()
    for step in run.steps:
        for group in run.groups(step):
            found = find_group(index, step, group[0].episode.group, {})
            fates = [(one.kept, one.decision.reason, one.decision.weighed, one.decision.round) for one in group]
            told = [(one["kept"], one["reason"], one.get("weighed", {}), one["round"]) for one in found["episodes"]]
            assert told == fates
            assert found["rejected"] == (not any(one.kept for one in group))
            assert found["kept"] == sum(one.kept for one in group)
            reasons |= {one.decision.reason for one in group if not one.kept}
            names |= {name for one in group for name in one.decision.weighed}
    assert how.reasons <= reasons
    assert names == how.weighed
    assert reasons <= set(page_words("REASONS")), "the page explains them"


def test_groups_are_found_by_their_round_of_refill(chosen):
    _, run, index = chosen
    groups = [(step, group) for step in run.steps for group in run.groups(step)]
    rounds = {group[0].decision.round for _, group in groups}
    assert max(rounds) > 0
    for number in rounds:
        wanted = [(step, group[0].episode.group) for step, group in groups if group[0].decision.round == number]
        found = list_groups(index, {"round": str(number), "limit": "1000"})
        assert sorted((row["step"], row["group"]) for row in found["rows"]) == sorted(wanted)
        assert {row["round"] for row in found["rows"]} == {number}
        told = figures_by_step(index, "train")
        counts = dict(zip(told["steps"], told["rounds"][str(number)], strict=True))
        assert counts == {step: sum(one == step for one, _ in wanted) for step in run.steps}
    assert set(told["rounds"]) == {str(number) for number in rounds}

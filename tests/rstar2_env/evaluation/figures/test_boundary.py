"""Claims about the boundary sets of two evaluations."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.evaluation.figures.boundary import SETS, boundary_sets, tally_of_run
from rstar2_env.evaluation.figures.statistics import pass_at_k
from rstar2_env.evaluation.figures.tally import EpisodeTally
from rstar2_env.evaluation.run import evaluate
from rstar2_env.testing.stub_sandbox import StubSandbox

counts = st.lists(st.integers(0, 4), min_size=1, max_size=12)


def tally_of(right: list[int], samples: int = 4) -> EpisodeTally:
    tally = EpisodeTally()
    for problem, number in enumerate(right):
        for sample in range(samples):
            tally.add(Episode(problem_id=f"p{problem}", end="answered", correct=sample < number))
    return tally


@given(counts, st.data())
def test_the_four_sets_divide_the_problems(before, data):
    after = data.draw(st.lists(st.integers(0, 4), min_size=len(before), max_size=len(before)))
    found = boundary_sets(tally_of(before), tally_of(after))
    sets = [set(getattr(found, name)) for name in SETS]
    assert sum(map(len, sets)) == len(set().union(*sets)) == len(before)
    assert set(found.consolidation) <= set(found.preservation)
    for problem, (first, then) in enumerate(zip(before, after, strict=True)):
        name = f"p{problem}"
        assert (name in found.expansion) == (first == 0 < then)
        assert (name in found.shrinkage) == (then == 0 < first)
        assert (name in found.consolidation) == (0 < first < then)


@given(counts)
def test_against_a_baseline_that_solves_nothing_the_expansion_is_pass_at_k(after):
    shares = boundary_sets(tally_of([0] * len(after)), tally_of(after)).shares()
    assert shares["expansion"] == pytest.approx(sum(pass_at_k(4, right, 4) for right in after) / len(after))
    assert shares["shrinkage"] == shares["preservation"] == 0.0


def test_problems_that_only_one_evaluation_has_are_left_out():
    found = boundary_sets(tally_of([1, 0]), tally_of([0, 1, 1]))
    assert (found.problems, found.shrinkage, found.expansion) == (2, ("p0",), ("p1",))
    assert json.loads(json.dumps(found.record()))["shares"]["expansion"] == 0.5
    assert boundary_sets(EpisodeTally(), tally_of([1])) is None


def test_a_baseline_is_the_folder_or_the_file_of_an_evaluation(tmp_path):
    sums = [{"id": f"sum-{n}", "question": f"{n}+1?", "answer": n + 1, "expression": f"{n}+1"} for n in range(4)]
    options = {"problems": sums, "env_options": {"sandbox": StubSandbox()}, "workers": 1}
    corrupt = {"agent_options": {"corrupt": True}}
    evaluate("rstar2/MathTool-v0", "oracle", **options, **corrupt, out=tmp_path / "folder")
    evaluate("rstar2/MathTool-v0", "oracle", **options, **corrupt, out=tmp_path / "file.jsonl")
    for name in ("folder", "file.jsonl"):
        assert tally_of_run(tmp_path / name).problems["sum-0"].episodes == 1
        other = {**options, "problems": "arithmetic", "episodes": 3}
        with pytest.raises(ConfigurationError, match="no problem in common with this evaluation"):
            evaluate("rstar2/MathTool-v0", "oracle", **other, baseline=tmp_path / name)
        result = evaluate("rstar2/MathTool-v0", "oracle", **options, baseline=tmp_path / name)
        assert result.boundary is not None
        assert result.boundary.shares()["expansion"] == 1.0
        assert result.rows()["expansion"] == "4 of 4 problems (100.00 %)"
        assert result.to_dict()["boundary"]["expansion"] == [f"sum-{n}" for n in range(4)]

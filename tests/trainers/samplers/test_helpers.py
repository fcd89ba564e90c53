"""What samplers share: kinds of problems, lists of them in shuffled passes, and how each went of late."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import RunWriter
from rstar2_env.problems import FixedSource, Problem, load_problems
from rstar2_env.trainers.samplers.kinds import Kinds
from rstar2_env.trainers.samplers.listed import Listed
from rstar2_env.trainers.samplers.rates import Rates

LEVELS = FixedSource(
    [Problem(f"p{n}", f"What is {n}?", str(n), "code" if n % 2 else "math", {"level": 10 - n}) for n in range(10)]
)
MIXTURE = load_problems(
    {"mix": [{"spec": "arithmetic:level=3"}, {"spec": [{"question": "1+1?", "answer": "2"}], "name": "tiny"}]}
)


class TestKinds:
    def test_they_are_the_values_of_a_field_in_their_order(self) -> None:
        assert Kinds(LEVELS).names == ("math", "code")
        assert Kinds(LEVELS, "level").names == tuple(str(level) for level in range(1, 11))
        assert Kinds(LEVELS, order=["code", "math"]).names == ("code", "math")

    def test_a_finite_kind_comes_in_shuffled_passes(self) -> None:
        kinds = Kinds(LEVELS, seed=3)
        drawn = [kinds.draw("code") for _ in range(10)]
        assert Counter(start.problem_id for start in drawn) == dict.fromkeys(["p1", "p3", "p5", "p7", "p9"], 2)
        assert {start.kind for start in drawn} == {"code"}
        assert len({start.seed for start in [*drawn, *(kinds.draw("math") for _ in range(10))]}) == 20

    def test_they_are_the_parts_of_a_mixture_whose_problems_it_knows(self) -> None:
        kinds = Kinds(MIXTURE)
        assert kinds.names == ("arithmetic:level=3", "tiny")
        for name in kinds.names:
            start = kinds.draw(name)
            assert MIXTURE.get(start.problem_id).id.startswith(f"{name}/")
        assert len({kinds.draw("arithmetic:level=3").problem_id for _ in range(20)}) == 20

    def test_leaving_kinds_out_changes_nothing_of_the_others(self) -> None:
        one, other = Kinds(LEVELS, "level", seed=5), Kinds(LEVELS, "level", ["7", "3"], seed=5)
        assert [one.draw("3") for _ in range(4)] == [other.draw("3") for _ in range(4)]

    @pytest.mark.parametrize(
        ("problems", "options", "message"),
        [
            (None, {}, "requires a mixture of sources or a finite source"),
            (load_problems("arithmetic"), {}, "requires a mixture of sources or a finite source"),
            (load_problems([{"question": "1+1?", "answer": "2"}]), {}, "there is only ''"),
            (LEVELS, {"by": "topic"}, "'p0' does not have the field 'topic'"),
            (LEVELS, {"order": ["logic"]}, "'logic', but the problems do not have this kind. Kinds: 'math', 'code'"),
        ],
    )
    def test_it_says_what_is_missing(self, problems: Any, options: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            Kinds(problems, **options)


class TestListed:
    def test_what_is_not_allowed_is_passed_over_and_nothing_repeats_within_a_pass(self) -> None:
        listed = Listed([f"p{n}" for n in range(20)], None, 1, seed=1)
        for _ in range(50):
            assert sorted(start.problem_id for start in listed.draw(6, range(6))) == [f"p{n}" for n in range(6)]

    def test_where_nothing_is_allowed_everything_is(self) -> None:
        listed = Listed(["a", "b"], None, 1, seed=0)
        assert {start.problem_id for start in listed.draw(2, ())} == {"a", "b"}

    def test_an_unlimited_source_gives_a_list_that_the_seed_decides(self) -> None:
        source = load_problems("arithmetic:level=2")
        one, same, other = (Listed(None, source, 50, seed) for seed in (4, 4, 5))
        assert one.ids == same.ids
        assert len(set(one.ids)) == 50
        assert len({*one.ids} & {*other.ids}) < 10
        assert all(source.get(name).id == name for name in one.ids)

    def test_an_environment_without_problems_is_refused_with_advice(self) -> None:
        with pytest.raises(ConfigurationError, match="sampler 'uniform'"):
            Listed(None, None, 8, 0)
        with pytest.raises(ConfigurationError, match="no problem to draw"):
            Listed([], None, 8, 0)


class TestRates:
    def test_as_many_of_the_latest_groups_count_as_hold_enough_episodes(self) -> None:
        rates = Rates(8)
        for right in (4, 0, 4, 1):
            rates.add("p", right, 4)
        assert (rates.of("p"), rates.episodes("p")) == (5 / 8, 8)
        rates.add("p", 16, 16)
        assert (rates.of("p"), rates.episodes("p")) == (1.0, 16)

    def test_a_group_of_which_nothing_counts_says_nothing(self) -> None:
        rates = Rates()
        rates.add("p", 0, 0)
        assert rates.of("p") is None

    def test_they_are_read_from_an_evaluation(self, tmp_path: Any) -> None:
        ends = [("a", 1.0), ("a", 0.0), ("b", 1.0), ("other", 1.0)]
        episodes = [Episode(problem_id=name, end="answered", correct=right > 0, reward=right) for name, right in ends]
        lost = Episode(problem_id="b", end="unavailable")
        writer = RunWriter(tmp_path / "measured", kind="evaluation")
        writer.begin({})
        writer.held_out(0, [*episodes, lost])
        rates = Rates()
        rates.read(str(tmp_path / "measured"), {"a", "b", "c"})
        assert [rates.of(name) for name in ("a", "b", "c", "other")] == [0.5, 1.0, None, None]
        assert json.loads(json.dumps(rates.state_dict())) == {"a": [[1.0, 2]], "b": [[1.0, 1]]}
        with pytest.raises(ConfigurationError, match="an evaluated episode of any of the 1 training problems"):
            Rates().read(str(tmp_path / "measured"), {"z"})
        with pytest.raises(ConfigurationError, match="does not exist: give the folder of a run"):
            Rates().read(str(tmp_path / "nowhere"), {"a"})

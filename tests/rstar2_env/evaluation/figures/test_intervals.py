"""Claims about figures of several samples, by source and difficulty, with their intervals."""

from __future__ import annotations

import json

import pytest

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.evaluation.figures.intervals import check_ks, figures_by, figures_of
from rstar2_env.evaluation.figures.tally import About, EpisodeTally


def tally_of(problems: dict[str, str], **about: dict[str, str]) -> EpisodeTally:
    """Of each problem its episodes: ``+`` right, ``-`` wrong, ``u`` unavailable, ``c`` right with a right chain."""
    tally = EpisodeTally()
    for number, (name, marks) in enumerate(problems.items()):
        for mark in marks:
            end = "unavailable" if mark == "u" else "answered"
            right = mark in "+c?"
            known = {key: values.get(name, "") for key, values in about.items()}
            chain = {"c": True, "+": False}.get(mark)
            judged = "c" in "".join(problems.values())
            played = Episode(problem_id=name, end=end, correct=right, answer="1" if right else "2", answer_tags=1)
            tally.add(played, About(number, chain=chain, judged=judged, **known))
    return tally


def test_pass_avg_and_maj_at_k_are_means_over_problems():
    figures = figures_of(tally_of({"a": "+---", "b": "++--"}), (1, 2, 4)).numbers()
    assert figures["pass@1"] == figures["avg@1"] == figures["avg@4"] == pytest.approx(0.375)
    assert figures["pass@2"] == pytest.approx((1 / 2 + 5 / 6) / 2)
    assert figures["pass@4"] == 1.0
    # One right vote against three loses; two against two share the vote.
    assert figures["maj@4"] == pytest.approx(0.25)


def test_an_unavailable_episode_is_no_sample_and_a_problem_with_too_few_is_left_out():
    figures = figures_of(tally_of({"a": "++u", "b": "---"}), (1, 3))
    assert figures.numbers()["pass@1"] == pytest.approx(0.5)
    assert figures.numbers()["pass@3"] == 0.0
    assert (figures.short, figures.problems, figures.episodes) == (1, 2, 5)


def test_cot_pass_counts_a_sample_only_if_its_chain_is_right_too():
    figures = figures_of(tally_of({"a": "c+--", "b": "cc--"}), (1, 2)).numbers()
    assert figures["cot_pass@1"] == pytest.approx((1 / 4 + 2 / 4) / 2)
    assert figures["cot_pass@2"] < figures["pass@2"]
    assert "cot_pass@1" not in figures_of(tally_of({"a": "+-"}), (1,)).numbers()


def test_a_sample_that_no_judge_replied_about_is_left_out_of_cot_pass():
    figures = figures_of(tally_of({"a": "c?--"}), (1, 4)).numbers()
    assert figures["cot_pass@1"] == pytest.approx(1 / 3)
    assert figures["cot_pass@4"] is None


def test_figures_by_source_and_difficulty_are_those_of_their_problems_alone():
    tally = tally_of(
        {"a": "++", "b": "--", "c": "+-"},
        source={"a": "easy set", "b": "hard set", "c": "hard set"},
        difficulty={"a": "2", "b": "10", "c": "10"},
    )
    by = figures_by(tally, (1,))
    assert {name: found.numbers()["pass@1"] for name, found in by["source"].items()} == {
        "easy set": 1.0,
        "hard set": 0.25,
    }
    assert list(by["difficulty"]) == ["2", "10"]
    assert json.loads(json.dumps(by["source"]["hard set"].record(), allow_nan=False))["problems"] == 2


def test_every_figure_has_an_interval_around_it():
    figures = figures_of(tally_of({f"p{n}": "+-" if n % 3 else "--" for n in range(30)}), (1, 2))
    for name in ("pass@1", "pass@2", "avg@2", "maj@2", "pass_rate"):
        found = figures.by_name[name]
        assert found.low < found.value < found.high, name


def test_no_right_answer_at_all_leaves_a_doubt():
    low, high = figures_of(tally_of({f"p{n}": "--" for n in range(30)}), (1,)).intervals()["pass@1"]
    assert (low, high) == (0.0, pytest.approx(0.1135, abs=1e-4))


def test_nothing_played_has_no_figure():
    figures = figures_of(EpisodeTally(), (1, 4))
    assert set(figures.numbers().values()) == {None}
    json.dumps(figures.record(), allow_nan=False)


def test_ks_are_one_and_the_samples_unless_given():
    assert check_ks(None, 16) == (1, 16)
    assert check_ks(None, 1) == (1,)
    assert check_ks([8, 1, 8], 8) == (1, 8)
    for wrong in ([0], [9], []):
        with pytest.raises(ConfigurationError, match="k must be"):
            check_ks(wrong, 8)


@pytest.mark.parametrize(("wrong", "option"), [([-1, 1], "k"), ([1, 9], "n")])
def test_the_message_names_the_option_that_is_wrong(wrong, option):
    with pytest.raises(ConfigurationError) as refused:
        check_ks(wrong, 8)
    assert refused.value.option == option

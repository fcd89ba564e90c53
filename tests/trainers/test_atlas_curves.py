"""The curves of the atlas: what a sentence names, which parts share a panel, and what the figures and lines show."""

from __future__ import annotations

from math import cos, radians

import pytest

from rstar2_env.trainers import TRAINERS

pytestmark = pytest.mark.train
pytest.importorskip("torch")


@pytest.fixture
def curves(benchmark_named):
    return benchmark_named("atlas_curves")


@pytest.fixture
def page(benchmark_named):
    return benchmark_named("atlas_page")


def one(angle, scale=1.0, noise=1.0, **more):
    """The figures of a case."""
    return {
        "cosines": {"return": cos(radians(angle))},
        "scales": {"return": scale},
        "length": 1.0,
        "noise": noise,
    } | more


def sampled(angle, within, **more):
    """The figures of a case whose angle has an interval of ``within`` degrees above it."""
    return one(angle, within=(cos(radians(angle)) - cos(radians(angle + within))) / 3, **more)


def record_of(curves, axis="group size", **points):
    """A record of parts of the loss, by the name of the part: the figures along an axis."""
    return {
        f"loss/{name}/{case}": {"family": "loss", "name": name, "case": case, **point}
        for name, own in points.items()
        for case, point in zip(curves.AXES[axis].values(), own, strict=False)
    }


@pytest.fixture
def sentence(curves):
    """A function that returns what moves with an axis, given the figures along it."""
    return lambda *points, axis="group size": curves.moves(record_of(curves, axis, x=points), "loss", "x")


def test_every_axis_has_a_curve_of_at_least_four_values(curves, benchmark_named):
    record = benchmark_named("atlas").read()
    for axis, values in curves.AXES.items():
        assert len(values) >= 4, axis
        assert [point.value for point in curves.curve(record, "recipe", "grpo", axis)] == list(values)


def test_a_sentence_names_the_axes_along_which_an_update_moves(sentence):
    assert sentence(one(10), one(5), one(2), one(1)) == "group size 2, 4, 8, 16: angle 10.0, 5.0, 2.0, 1.0"
    scales = sentence(one(1), one(1, 1.1), one(1, 1.3), one(1, 1.3))
    assert scales == "group size 2, 4, 8, 16: scale 1, 1.1, 1.3, 1.3"
    noises = sentence(one(1, 1, 9.0), one(1, 1, 4.0), one(1, 1, 3.0), one(1, 1, 3.0))
    assert noises == "group size 2, 4, 8, 16: noise 9, 4, 3, 3"
    assert sentence(*[one(1)] * 4) == ""


def test_a_sampled_angle_moves_only_if_two_intervals_do_not_overlap(sentence):
    rest = [sampled(2, 1)] * 3
    assert sentence(sampled(6, 0.5), *rest) == "group size 2, 4, 8, 16: angle 6.0, 2.0, 2.0, 2.0"
    assert sentence(sampled(6, 4), *rest) == "", "the change is as wide as the widest half interval"
    assert sentence(sampled(3.9, 0.1), *[sampled(2, 0.1)] * 3) == "", "less than two degrees"


def test_the_interval_of_an_angle_is_three_standard_errors_of_its_cosine_on_each_side(curves):
    assert curves.interval(sampled(60, 5)) == (pytest.approx(54.7, abs=0.1), pytest.approx(60), pytest.approx(65))
    assert curves.interval(sampled(1, 3))[0] == 0, "a cosine is at most 1"
    assert curves.interval(one(60)) == pytest.approx((60, 60, 60))


def test_a_scale_is_named_only_if_all_groups_were_listed(sentence):
    assert "scale" in sentence(one(1, 2.0), *[one(1)] * 3)
    assert sentence(one(1, 2.0), *[one(1)] * 2, sampled(1, 0.1)) == ""


def test_the_angle_of_a_single_decision_is_not_compared(sentence):
    points = [one(0), *[one(6)] * 3]
    assert sentence(*points, axis="turns") == ""
    assert sentence(*points).startswith("group size 2, 4, 8, 16: angle 0.0, 6.0")
    moved = sentence(one(0), one(6), one(9), one(9), axis="turns")
    assert moved.endswith("; turns 1, 2, 3, 4: angle 0.0, 6.0, 9.0, 9.0")


def test_rounding_is_neither_a_noise_nor_a_scale(sentence):
    assert sentence(one(1, noise=7e-16), *[one(1, noise=0.4)] * 3) == ""
    assert sentence(one(1, 1e-17), *[one(1, -1e-16)] * 3) == ""
    assert sentence(one(1, 1e-17), *[one(1, 0.5)] * 3) == "group size 2, 4, 8, 16: scale 0, 0.5, 0.5, 0.5"


def test_parts_with_equal_curves_share_a_panel(curves):
    given = {
        "a": one(10),
        "b": one(10.01, 1.001, 1.001),
        "angle": one(10.2),
        "scale": one(10, 1.1),
        "noise": one(10, 1, 1.1),
        "interval": sampled(10, 1),
        "zero": one(0, 0.0, None),
        "rounding": one(1e-6, 1e-17, 1e-12),
    }
    record = record_of(curves, **{name: [point] * 2 for name, point in given.items()})
    shared = [["a", "b"], ["angle"], ["scale"], ["noise"], ["interval"], ["zero", "rounding"]]
    assert list(curves.alike(record, "loss").values()) == shared


def test_a_line_names_the_parts_of_a_panel_if_there_are_more_than_four(curves):
    five, four = (
        record_of(curves, **dict.fromkeys("abcde", [one(1)] * 2)),
        record_of(curves, **dict.fromkeys("abcd", [one(1)] * 2)),
    )
    assert list(curves.same_curves(five, "loss")) == ["`a`, `b`, `c`, `d` and `e` have the same curves."]
    assert list(curves.same_curves(four, "loss")) == []


def test_a_figure_shows_the_intervals_of_sampled_angles(curves, tmp_path):
    for name, point in (("plain", one(10)), ("interval", sampled(10, 5))):
        assert curves.draw_curves(record_of(curves, x=[point] * 2), "loss", tmp_path / f"{name}.png")
    plain, interval = ((tmp_path / f"{name}.png").read_bytes() for name in ("plain", "interval"))
    assert plain.startswith(b"\x89PNG")
    assert plain != interval


def test_a_family_without_a_curve_has_no_figure(curves, page, tmp_path):
    record = record_of(curves, x=[one(1)])
    assert not curves.draw_curves(record, "loss", tmp_path / "none.png")
    assert not list(tmp_path.iterdir())
    assert "(pictures/atlas_loss.png)" not in "\n".join(page.lines(record))
    assert "(pictures/atlas_loss.png)" in "\n".join(page.lines(record_of(curves, x=[one(1)] * 2)))


def test_what_a_recipe_plays_and_pays_otherwise_is_left_out(page):
    assert page.left_out(["grpo"]) == ""
    assert page.left_out(["dapo"]) == "`reward=overlong`"
    assert page.left_out(["grpo", "dapo"]) == "dapo: `reward=overlong`"
    assert page.left_out(["deepsearch"]) == "`rollout=deepsearch`", "its advantage adds the component overlong"
    assert "overlong" in [part.name for part in TRAINERS.get("deepsearch").configure({"model": "m"}).parts.reward]


def test_an_update_behind_is_named_in_the_singular(page):
    lines = "\n".join(page.lines({}))
    assert "weights 1 update behind |" in lines
    assert "weights 4 updates behind |" in lines

"""Two evaluations against each other: over the same problems, with what changed and how surely."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from cli_runner import run
from made_evaluations import sample, write_counts, write_evaluation

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.evaluation.comparison.compare import Comparison, compare
from rstar2_env.evaluation.comparison.exact_tests import false_shares, fisher_exact
from rstar2_env.evaluation.stored.runs import find_stored

BASE = {"a": (1, 4), "b": (4, 4), "c": (0, 4), "only base": (2, 4)}
TRAINED = {"a": (4, 4), "b": (4, 4), "c": (0, 4), "only trained": (2, 4)}


def compared(*paths: Path, **options: object) -> Comparison:
    (found,) = compare([find_stored(str(path)) for path in paths], **options)  # type: ignore[arg-type]  # a test's
    return found


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return write_counts(tmp_path / "base.jsonl", BASE), write_counts(tmp_path / "trained.jsonl", TRAINED)


def test_only_problems_that_both_played_are_compared(pair: tuple[Path, Path]) -> None:
    found = compared(*pair)
    assert (found.problems, found.baseline.problems, found.other.problems) == (3, 4, 4)
    figure = found.figures["pass@1"]
    assert figure.baseline.value == pytest.approx((0.25 + 1 + 0) / 3)
    assert figure.other.value == pytest.approx(2 / 3)
    assert figure.difference.value == pytest.approx(0.25)
    assert figure.p_value == 1.0, "one problem that differs could as well have differed the other way"
    assert found.solved == {"both": 2, "baseline_only": 0, "other_only": 0, "neither": 1}


def test_a_comparison_is_shown_as_a_table_and_as_a_picture(pair: tuple[Path, Path]) -> None:
    found = compared(*pair)
    assert str(found).startswith(f"{found.title}\n")
    assert "3 problems in common, of 4 and 4." in str(found)
    page = found._repr_html_()
    assert "<td style='text-align:left'>pass@1</td>" in page
    assert "3 problems in common, of 4 and 4." in page
    assert found.plot()._repr_png_().startswith(b"\x89PNG")


def test_a_difference_of_0_on_every_problem_has_no_interval(pair: tuple[Path, Path]) -> None:
    (row,) = (line.split() for line in str(compared(pair[0], pair[0])).splitlines() if line.startswith("  pass@1"))
    assert row[-3:] == ["+0.000", "–", "1"]


def test_the_curves_are_those_of_pass_at_k(pair: tuple[Path, Path]) -> None:
    found = compared(*pair)
    assert found.ks == (1, 2, 3, 4)
    a = [1 - math.comb(3, k) / math.comb(4, k) for k in found.ks]
    assert [point.value for point in found.curves[0]] == pytest.approx([(value + 1) / 3 for value in a])
    assert [point.value for point in found.curves[1]] == pytest.approx([2 / 3] * 4)
    assert found.crossing is None


def test_the_crossing_is_the_first_k_at_which_the_order_is_another(tmp_path: Path) -> None:
    # The base solves each problem now and then, the trained one half of them always.
    base = write_counts(tmp_path / "base.jsonl", {f"p{i}": (4, 16) for i in range(10)})
    trained = write_counts(tmp_path / "trained.jsonl", {f"p{i}": (16 * (i < 5), 16) for i in range(10)})
    found = compared(base, trained)
    curve = [1 - math.comb(12, k) / math.comb(16, k) for k in range(1, 17)]
    assert found.crossing == next(k for k, value in enumerate(curve, 1) if value > 0.5) == 3
    assert compared(trained, base).crossing == 3


def test_a_sure_difference_has_a_small_p_value_and_an_interval_apart_from_zero(tmp_path: Path) -> None:
    base = write_counts(tmp_path / "base.jsonl", {f"p{i}": (i % 3, 8) for i in range(30)})
    trained = write_counts(tmp_path / "trained.jsonl", {f"p{i}": (i % 3 + 4, 8) for i in range(30)})
    figure = compared(base, trained).figures["pass@1"]
    assert figure.difference.low > 0.4
    assert figure.p_value < 0.001
    assert compared(base, base).figures["pass@1"].p_value == 1.0


def test_a_share_is_the_ratio_of_sums_and_its_difference_is_paired(tmp_path: Path) -> None:
    def episodes(errors: int) -> list[object]:
        return [sample(f"p{i}", True, calls=["exception"] * errors + ["ok"] * (1 + i % 3)) for i in range(12)]

    base = write_evaluation(tmp_path / "base.jsonl", episodes(2))  # type: ignore[arg-type]  # episodes
    trained = write_evaluation(tmp_path / "trained.jsonl", episodes(1))  # type: ignore[arg-type]  # episodes
    figure = compared(base, trained).figures["tool_error_share"]
    assert figure.baseline.value == pytest.approx(24 / 48)
    assert figure.other.value == pytest.approx(12 / 36)
    assert figure.difference.value == pytest.approx(12 / 36 - 24 / 48)
    assert figure.difference.high < 0


def test_a_share_that_no_episode_says_anything_about_is_no_figure(pair: tuple[Path, Path]) -> None:
    assert "tool_error_share" not in compared(*pair).figures


def test_a_majority_needs_three_votes(pair: tuple[Path, Path]) -> None:
    assert [name for name in compared(*pair).figures if "@" in name] == ["pass@1", "pass@2", "pass@4", "maj@4"]


def test_problems_that_changed_come_with_the_surest_first(tmp_path: Path) -> None:
    base = write_counts(tmp_path / "base.jsonl", {"sure": (0, 8), "unsure": (3, 8), "same": (5, 8)})
    trained = write_counts(tmp_path / "trained.jsonl", {"sure": (8, 8), "unsure": (4, 8), "same": (5, 8)})
    sure, unsure = compared(base, trained).changed
    assert (sure.problem, sure.baseline, sure.other, sure.difference) == ("sure", (0, 8), (8, 8), 1.0)
    assert sure.p_value == pytest.approx(2 / math.comb(16, 8))
    assert (unsure.problem, unsure.difference) == ("unsure", 0.125)
    assert sure.q_value == pytest.approx(3 * sure.p_value)


def test_a_problem_of_the_same_id_with_another_gold_answer_is_another_problem(tmp_path: Path) -> None:
    base = write_counts(tmp_path / "base.jsonl", BASE, golds={"a": "1", "b": "1"})
    trained = write_counts(tmp_path / "trained.jsonl", TRAINED, golds={"a": "2", "b": "1"})
    found = compared(base, trained)
    assert (found.problems, found.other_gold) == (2, 1)


def test_a_problem_that_lost_samples_leaves_the_others_theirs(tmp_path: Path) -> None:
    counts = {f"p{i}": (2, 8) for i in range(20)}
    base = write_counts(tmp_path / "base.jsonl", {**counts, "p0": (1, 2)})
    trained = write_counts(tmp_path / "trained.jsonl", counts)
    assert compared(base, trained).ks[-1] == 8


def test_episodes_that_do_not_count_are_in_no_figure(tmp_path: Path) -> None:
    lost = sample("a", False)
    lost.void("refused", "no")
    base = write_evaluation(tmp_path / "base.jsonl", [sample("a", True), lost])
    found = compared(base, base)
    assert found.figures["pass@1"].baseline.value == 1.0
    assert (found.baseline.episodes, found.baseline.uncounted) == (1, 1)


def test_held_out_episodes_of_training_are_compared_by_their_step(tmp_path: Path) -> None:
    from rstar2_env.core.run_folder import RunWriter

    writer = RunWriter(tmp_path / "run")
    writer.begin({"trainer": "grpo"})
    for step, right in ((0, False), (20, True)):
        writer.held_out(step, [sample(name, right) for name in "abc"])
    found = compared(tmp_path / "run@0", tmp_path / "run")
    assert (found.baseline.step, found.other.step) == (0, 20)
    assert found.figures["pass@1"].difference.value == 1.0


@pytest.mark.parametrize(
    ("a", "n_a", "b", "n_b", "p"),
    # The lady tasting tea, and tables of R's fisher.test.
    [(3, 4, 1, 4, 0.4857142857), (1, 10, 7, 10, 0.0197666111), (0, 5, 0, 5, 1.0), (8, 8, 0, 8, 0.0001554002)],
)
def test_fishers_test_gives_the_published_values(a: int, n_a: int, b: int, n_b: int, p: float) -> None:
    assert fisher_exact(a, n_a, b, n_b) == pytest.approx(p, rel=1e-6)


def test_false_shares_are_those_of_benjamini_and_hochberg() -> None:
    # R: p.adjust(c(0.01, 0.04, 0.03, 0.005, 0.5), "BH")
    assert false_shares([0.01, 0.04, 0.03, 0.005, 0.5]) == pytest.approx([0.025, 0.05, 0.05, 0.025, 0.5])
    assert false_shares([]) == []


def test_a_difference_of_shares_by_chance_is_seldom_a_sure_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    p_values = []
    for number in range(20):
        paths = []
        for side in "ab":
            calls = [["ok"] * int(rng.integers(1, 4)) + ["exception"] * int(rng.integers(0, 3)) for _ in range(12)]
            episodes = [sample(f"p{i}", True, calls=one) for i, one in enumerate(calls)]
            paths.append(write_evaluation(tmp_path / f"{side}{number}.jsonl", episodes))
        p_values.append(compared(*paths, resamples=100).figures["tool_error_share"].p_value)
    assert 0.2 < np.mean(np.array(p_values) < 0.5) < 0.8
    assert np.mean(np.array(p_values) < 0.05) <= 0.2


class TestCommand:
    def test_it_prints_figures_and_problems_and_draws(self, pair: tuple[Path, Path], tmp_path: Path) -> None:
        done = run("compare", *pair, "--report", tmp_path / "deep" / "c.png", columns=80)
        assert done.exit_code == 0, done.output
        for words in ("pass@1", "+0.250", "3 problems in common, of 4 and 4", "1 of the 1 problems", "1/4", "4/4"):
            assert words in done.output, words
        assert (tmp_path / "deep" / "c.png").read_bytes().startswith(b"\x89PNG")

    def test_a_report_with_the_suffix_of_another_format_is_refused(
        self, pair: tuple[Path, Path], tmp_path: Path
    ) -> None:
        done = run("compare", *pair, "--report", tmp_path / "c.txt")
        assert done.exit_code == 2
        assert "name the file c.png" in " ".join(done.stderr.split())
        assert not (tmp_path / "c.txt").exists()

    def test_json_holds_it_all(self, pair: tuple[Path, Path]) -> None:
        (told,) = json.loads(run("compare", *pair, "--json").stdout)
        assert told["figures"]["pass@1"]["difference"]["value"] == pytest.approx(0.25)
        assert told["curve"]["k"] == [1, 2, 3, 4]
        assert [one["problem"] for one in told["changed"]] == ["a"]

    def test_three_runs_are_two_comparisons_with_the_first(self, pair: tuple[Path, Path], tmp_path: Path) -> None:
        told = json.loads(run("compare", *pair, pair[0], "--json").stdout)
        assert [one["other"]["name"] for one in told] == [str(pair[1]), str(pair[0])]

    def test_suites_are_compared_set_by_set(self, tmp_path: Path) -> None:
        from rstar2_env.core.run_folder import RunWriter

        for suite, names in (("base", "xyz"), ("trained", "xy")):
            for name in names:
                writer = RunWriter(tmp_path / suite / name, kind="evaluation")
                writer.begin({"env": name})
                writer.held_out(0, [sample(f"{name}1", suite == "trained")])
        png = tmp_path / "c.png"
        done = run("compare", tmp_path / "base", tmp_path / "trained", "--report", png, "--json")
        told = json.loads(done.stdout)
        assert [Path(one["other"]["name"]).name for one in told] == ["x", "y"]
        assert {path.name for path in tmp_path.glob("c*.png")} == {"c-x.png", "c-y.png"}
        alone = run("compare", tmp_path / "base", tmp_path / "trained" / "x", columns=300)
        assert "have no set of problems with the same name" in " ".join(alone.output.split())

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["BASE"], "two or more runs"),
            (["BASE", "BASE", "--k", "8"], "k must be between 1 and 4, the largest number of samples"),
            (["BASE", "BASE", "--k", "one"], "--k must be whole numbers"),
            (["BASE", "OTHER"], "have no problem in common"),
            (["BASE", "nowhere"], "nowhere does not exist"),
        ],
    )
    def test_mistakes_are_told(self, arguments: list[str], words: str, pair: tuple[Path, Path], tmp_path: Path) -> None:
        other = write_counts(tmp_path / "other.jsonl", {"z": (1, 4)})
        named = {"BASE": str(pair[0]), "OTHER": str(other)}
        done = run("compare", *(named.get(one, one) for one in arguments), columns=200)
        assert done.exit_code == 2
        assert words in " ".join(done.output.split())


def test_fewer_than_two_runs_are_refused(pair: tuple[Path, Path]) -> None:
    with pytest.raises(ConfigurationError, match="two or more runs"):
        compare([find_stored(str(pair[0]))])

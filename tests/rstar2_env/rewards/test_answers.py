"""Scores of answers: truth tables and golden numbers of the papers."""

from __future__ import annotations

from typing import ClassVar

import pytest
from said import given, said, score

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn
from rstar2_env.problems import Problem
from rstar2_env.rewards import RewardContext, make_component
from rstar2_env.rewards.diff_similarity import DiffSimilarity
from rstar2_env.rewards.exploration import Exploration
from rstar2_env.rewards.letter_choice import LetterChoice
from rstar2_env.rewards.metric_threshold import MetricThreshold
from rstar2_env.rewards.model_verifier import ModelVerifierReward
from rstar2_env.rewards.outcome import OutcomeReward
from rstar2_env.rewards.rubric import Rubric
from rstar2_env.rewards.text_metrics import bleu, word_f1
from rstar2_env.rewards.tool_hierarchy import ToolHierarchy


def test_the_outcome_is_the_verdict_whatever_the_environment_paid():
    assert score(OutcomeReward(), said("x", correct=True, reward=0.25)) == 1.0
    assert score(OutcomeReward(wrong=-0.5), said("x", reward=0.25)) == -0.5


class TestToolHierarchy:
    """The truth table of Tool-Star."""

    @staticmethod
    def episode(*tools, status="ok", **fields):
        calls = [{"name": name, "status": status} for name in tools]
        fields = {"correct": True, "answer": "4 apples", **fields}
        return said("x", steps=[Turn(info={"tool_calls": calls})], statuses=[ToolStatus(status)] * len(tools), **fields)

    @pytest.mark.parametrize(
        ("tools", "fields", "expected"),
        [
            (("python", "search"), {"answer_tags": 0}, -1.0),
            (("python", "search"), {"answer_tags": 2}, -1.0),
            (("python", "search"), {"status": "malformed"}, -1.0),
            (("python", "search"), {"correct": False}, 0.0),
            (("python",), {}, 1.0),
            (("python", "python"), {}, 1.0),
            (("python", "search"), {}, 1.1),
            (("python", "search"), {"status": "exception"}, 1.1),
            (("python", "search"), {"status": "unknown_tool"}, 1.0),
        ],
    )
    def test_format_then_answer_then_tools(self, tools, fields, expected):
        assert score(ToolHierarchy(), self.episode(*tools, **fields)) == pytest.approx(expected)

    def test_the_answer_may_count_by_its_words(self):
        part = ToolHierarchy(score="f1")
        assert part.needs == {"problem"}
        assert ToolHierarchy().needs == frozenset()
        half = self.episode("python", "search", correct=False)
        assert score(part, half, given("four apples")) == pytest.approx(0.5 + 0.1)
        assert score(part, half, given("pears")) == 0.0


@pytest.mark.parametrize(
    ("tags", "answer", "expected"), [(1, "the cat", 3.0), (1, "a dog", -0.5), (0, "the cat", -3.0), (0, None, -3.0)]
)
def test_the_four_cases_of_format_and_metric(tags, answer, expected):
    for metric in ("bleu", "word_f1", lambda answer, gold: float(answer == gold)):
        part = MetricThreshold(metric=metric, threshold=0.6)
        assert score(part, said("x", answer_tags=tags, answer=answer), given("the cat")) == expected


@pytest.mark.parametrize(("tags", "expected"), [(1, 1.25), (0, -3.0), (2, -3.0)])
def test_a_continuous_metric_is_added_to_the_format(tags, expected):
    part = MetricThreshold(metric=lambda answer, gold: 0.25, how="continuous")
    assert score(part, said("x", answer_tags=tags, answer="y"), given("z")) == expected


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("Paris!", "Paris", 1.0),
        ("The cat sat.", "a cat sat down", 0.8),
        ("U.S.", "us", 1.0),
        ("yes", "yes, it is", 0.0),
        ("No", "no", 1.0),
        ("it is", "yes", 0.0),
        ("他是学生", "她是学生", 0.75),
    ],
)
def test_the_overlap_of_words_is_that_of_hotpotqa(answer, gold, expected):
    assert word_f1(answer, gold) == pytest.approx(expected)


def test_a_chinese_character_is_a_word_of_bleu():
    # Precisions 3/4, (2+1)/(3+1), (1+1)/(2+1), (0+1)/(1+1).
    assert bleu("他是学生", "她是学生") == pytest.approx((3 / 4 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)


def test_a_metric_must_exceed_the_threshold():
    part = MetricThreshold(metric=lambda answer, gold: 0.5, threshold=0.5)
    assert score(part, said("x", answer="y"), given("z")) == -0.5


def test_the_text_metrics_have_known_values():
    assert word_f1("The red cat", "a red dog") == 0.5
    assert word_f1("", "") == bleu("it is so, then", "it is so, then") == 1.0
    assert bleu("", "a") == bleu("b", "a") == 0.0
    # Precisions 3/4, (1+1)/(3+1), (0+1)/(2+1), (0+1)/(1+1), as long as the gold text.
    assert bleu("a b x c", "a b c d") == pytest.approx((3 / 4 * 2 / 4 * 1 / 3 * 1 / 2) ** 0.25)
    assert bleu("a b c d", "a b c d e f") == pytest.approx(2.718281828**-0.5)


@pytest.mark.parametrize(
    ("text", "gold", "expected"),
    [
        ("So \\boxed{B}.", "B", 1),
        ("So \\boxed{\\text{B}}.", "B", 1),
        ("<answer>B</answer>", "B", 1),
        ("<answer>\\boxed{b}</answer>", "B", 1),
        ("Answer: B", "B", 1),
        ("The answer is (B), since", "B", 1),
        ("**Answer:** **B**", "B", 1),
        ("It is (A)? No: (B)", "B", 1),
        ("B.", "B", 1),
        ("\\boxed{A} or rather \\boxed{B}", "B", 1),
        ("\\boxed{A, C}", "C, A", 1),
        ("\\boxed{A and C}", "A, C", 1),
        ("\\boxed{A}", "A, C", 0),
        ("\\boxed{A, C}", "A", 0),
        ("\\boxed{A}", "B", 0),
        ("\\boxed{Because}", "B", 0),
        ("The answer is a number", "A", 0),
        ("I do not know.", "A", 0),
        ("", "A", 0),
    ],
)
def test_the_letter_is_found_however_it_is_written(text, gold, expected):
    assert score(LetterChoice(), said(text), given(gold)) == expected


def test_a_gold_answer_that_is_no_letter_is_refused():
    with pytest.raises(ConfigurationError, match="needs a gold answer that is one letter"):
        score(LetterChoice(), said("\\boxed{B}"), given("42"))


def test_only_the_last_turn_chooses_a_letter():
    assert score(LetterChoice(), said("\\boxed{A}", "I do not know."), given("A")) == 0


class TestDiffSimilarity:
    """The golden numbers of SWE-RL, from its released code, and what is no patch."""

    twice = "def f(x):\n    y = x\n    return y\n\n\ndef g(x):\n    y = x\n    return y\n"
    files: ClassVar = {"a.py": "a = 1\n", "b.py": "b = 1\n", "c.py": twice}

    def edit(self, path, search, replace):
        return f"### {path}\n```\n<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n```\n"

    def score(self, text, **meta):
        ctx = given("fixed", **{"files": self.files, "fixed": {"a.py": "a = 3\n"}, **meta})
        return score(DiffSimilarity(), said(text), ctx)

    def test_the_golden_number_of_one_line(self):
        assert self.score(self.edit("a.py", "a = 1\n", "a = 2\n")) == pytest.approx(0.96)
        assert self.score(self.edit("a.py", "a = 1\n", "a = 3\n")) == 1.0

    @pytest.mark.parametrize(
        ("search", "replace", "expected"),
        [
            ("    y = x\n", "    y = x + 1\n", 1.0),
            ("def f(x):\n    y = x\n", "def f(x):\n    y = x + 1\n", 0.7120418848167539),
            ("    y = x\n", "    y = x + 2\n", 0.9834710743801653),
            ("def g(x):\n", "def g(z):\n", 0.6268656716417911),
            ("   y = x\n", "   y = x + 1\n", -1.0),
            ("= x\n", "= x + 1\n", -1.0),
        ],
    )
    def test_every_match_at_the_start_of_a_line_is_replaced(self, search, replace, expected):
        fixed = {"c.py": self.twice.replace("y = x", "y = x + 1")}
        assert self.score(self.edit("c.py", search, replace), fixed=fixed) == pytest.approx(expected)

    def test_an_edit_that_changes_nothing_breaks_the_others(self):
        text = self.edit("a.py", "a = 1\n", "a = 3\n") + self.edit("b.py", "b = 1\n", "b = 1\n")
        assert self.score(text) == -1.0

    def test_the_gold_answer_may_be_a_diff(self):
        ctx = given("--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@ def f():\n-a = 1\n+a = 3\n", files=self.files)
        text = self.edit("a.py", "a = 1\n", "a = 2\n")
        assert score(DiffSimilarity(), said(text), ctx) == pytest.approx(0.96)

    def test_a_file_that_one_of_them_changes_counts_as_nothing_in_common(self):
        both = self.edit("a.py", "a = 1\n", "a = 3\n") + self.edit("b.py", "b = 1\n", "b = 2\n")
        assert self.score(both) == 0.5
        assert self.score(self.edit("b.py", "b = 1\n", "b = 2\n")) == 0.0

    @pytest.mark.parametrize(
        "edits",
        [(), (("a.py", "a = 1\n", "a = 1\n"),), (("a.py", "a = 7\n", "a = 3\n"),), (("c.py", "a = 1\n", "a = 3\n"),)],
    )
    def test_no_edit_one_that_does_nothing_and_one_that_fits_nowhere_are_broken(self, edits):
        text = "".join(self.edit(*edit) for edit in edits)
        assert self.score(text or "I would change a.py.") == -1.0

    def test_a_problem_without_files_is_refused(self):
        with pytest.raises(ConfigurationError, match=r"needs the files of each problem as meta\['files'\]"):
            self.score("", files=None)


class TestExploration:
    """More reasoning is less negative, and bounded by 0."""

    def test_the_penalty_shrinks_with_the_text_and_never_becomes_a_bonus(self):
        scores = [score(Exploration(), said("x" * length)) for length in (400, 4000, 40_000, 4_000_000)]
        assert scores == pytest.approx([-10, -1, -0.1, -0.001])
        assert score(Exploration(), said("")) == -1000

    @pytest.mark.parametrize("length", [400, 4000, 40_000])
    def test_no_answer_costs_more_than_an_answer_of_the_same_length(self, length):
        answered = score(Exploration(), said("x" * length))
        assert score(Exploration(), said("x" * length, answer_tags=0)) == pytest.approx(answered - 0.5)

    def test_only_the_reasoning_before_the_first_answer_counts(self):
        assert score(Exploration(), said("x" * 400 + "\\boxed{4}" + "x" * 4000)) == pytest.approx(-10)
        assert score(Exploration(), said("x" * 200, "x" * 198 + "<answer>4</answer>" + "x" * 400)) == pytest.approx(-10)

    @pytest.mark.parametrize(
        ("reply", "expected"), [("I say: 7", 0.7), ("7 of 10, so 10", 1.0), ("50", 1.0), ("Well.", None)]
    )
    def test_a_judge_marks_creativity(self, reply, expected):
        part = Exploration(how="creativity")
        assert part.needs == {"judge"}
        assert score(part, said("try", "again"), given("4", judge=lambda prompt: reply)) == expected


class TestModelVerifier:
    """Golden numbers of General-Reasoner."""

    @pytest.mark.parametrize(("apart", "expected"), [(0, 1.0), (3, 0.85), (10, 0.5), (50, 0.5)])
    def test_a_verified_answer_loses_with_its_length(self, apart, expected):
        answer = " ".join(["word"] * (apart + 1))
        assert score(ModelVerifierReward(), said("x", answer=answer), given("word", judge=lambda _: "CORRECT")) == (
            pytest.approx(expected)
        )

    def test_a_refused_answer_scores_0_whatever_its_length(self):
        long = said("x", answer="word " * 20)
        assert score(ModelVerifierReward(), long, given("word", judge=lambda _: "INCORRECT")) == 0.0

    @pytest.mark.parametrize(("reply", "expected"), [("INCORRECT", 0.0), ("hm", 0.0), ("INCORRECT? No: CORRECT", 1.0)])
    def test_the_last_word_of_the_judge_counts(self, reply, expected):
        assert score(ModelVerifierReward(), said("x", answer="4"), given("4", judge=lambda _: reply)) == expected

    @pytest.mark.parametrize("answer", [None, "", "  "])
    def test_nobody_is_asked_about_no_answer(self, answer):
        assert score(ModelVerifierReward(), said("x", answer=answer), given("4", judge=lambda _: 1 / 0)) == -0.5

    def test_the_judge_reads_the_answer_between_marks_that_it_cannot_write(self):
        seen = []
        for _ in range(2):
            score(
                ModelVerifierReward(),
                said("x", answer="</ANSWER>"),
                given("4", judge=lambda p: seen.append(p) or "CORRECT"),
            )
        assert seen[0] != seen[1]
        assert "A question?" in seen[0]


class TestRubric:
    """Points met, over the positive ones."""

    rubric = (
        {"criterion": "shows the sum", "points": 3},
        {"criterion": "names the unit", "points": 1},
        {"criterion": "guesses", "points": -2},
    )

    @pytest.mark.parametrize(
        ("met", "expected"),
        [
            (("shows the sum", "names the unit"), 1.0),
            (("shows the sum",), 0.75),
            (("shows the sum", "guesses"), 0.25),
            (("guesses",), -0.5),
            ((), 0.0),
        ],
    )
    def test_the_share_of_the_points(self, met, expected):
        def judge(prompt):
            return "It does. YES" if any(one in prompt for one in met) else "No, NO"

        assert score(Rubric(), said("x"), given("4", judge=judge, rubric=self.rubric)) == expected

    @pytest.mark.parametrize("rubric", [None, [], [{"criterion": "x"}], [{"criterion": "x", "points": -1}]])
    def test_a_problem_without_one_is_refused(self, rubric):
        with pytest.raises(ConfigurationError, match="list of mappings with criterion and points"):
            score(Rubric(), said("x"), given("4", judge=lambda _: "YES", rubric=rubric))


class TestRouter:
    """One component for each source, and no other."""

    def test_the_source_chooses_and_the_weight_is_that_of_the_route(self):
        part = make_component('router:routes={"math": "return", "code": "outcome:wrong=-1,weight=2"}').score
        assert score(part, Episode(task="math", reward=0.5)) == 0.5
        assert score(part, Episode(task="code", reward=0.5)) == -2.0

    def test_a_source_without_a_route_is_an_error_and_no_nought(self):
        part = make_component("router").score
        assert score(part, Episode(task="tabular", reward=0.5)) == 0.5
        with pytest.raises(ConfigurationError, match="route for the source of problems 'chess', only for math, code"):
            score(part, Episode(task="chess"))

    def test_the_source_may_be_that_of_the_problem(self):
        part = make_component('router:by=problem,routes={"maths": "return"}').score
        assert part.needs == {"problem"}
        ctx = RewardContext(problem=Problem("p", "1 + 1?", "2", "maths"))
        assert score(part, Episode(task="rstar2/MathTool-v0", reward=0.5), ctx) == 0.5

    def test_it_needs_what_any_of_its_routes_needs(self):
        part = make_component('router:routes={"math": "return", "text": "model_verifier", "plan": "progress"}').score
        assert part.needs == {"judge", "problem", "group", "play", "tokens"}
        judged = score(part, said("x", task="text", answer="4"), given("4", judge=lambda _: "CORRECT"))
        assert judged == 1.0
        with pytest.raises(ConfigurationError, match="name the component of each source"):
            make_component("router:routes={}")


@pytest.mark.parametrize("name", ["letter_choice", "metric_threshold", "reference_probability", "model_verifier"])
def test_a_problem_without_a_gold_answer_is_refused(name):
    with pytest.raises(ConfigurationError, match=rf"'{name}' needs the gold answer of each problem, but 'p' has none"):
        score(make_component(name).score, said("x", answer="4"), given(" ", judge=str))

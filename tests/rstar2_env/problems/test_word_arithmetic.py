"""Claims about ``word_arithmetic`` and ``gsm_symbolic``: programs compute the answers, and no test story leaks."""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import re

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems import load_problems
from rstar2_env.problems.word_sentences import ITEMS, SENTENCES
from rstar2_env.traces.writer import generate_traces

SPLITS = ("train", "validation", "test")


def some(name: str, split: str, count: int, **options: object):
    return list(itertools.islice(load_problems(name, split=split, **options), count))


def printed(program: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(program, {})
    return out.getvalue().strip()


@pytest.mark.parametrize("split", SPLITS)
def test_the_program_prints_the_answer_in_three_to_five_steps_with_numbers_to_999(split):
    problems = some("word_arithmetic", split, 600)
    for problem in problems:
        program, operands = problem.meta["program"], problem.meta["operands"]
        assert printed(program) == problem.answer
        assert int(problem.answer) >= 1
        assert sorted(map(int, re.findall(r"\d+", problem.question))) == sorted(operands)
        assert max(operands) <= 999
        operations = len(re.findall(r"[+*/-]=?", program.replace("//100", "").replace("//", "/")))
        assert 3 <= problem.meta["steps"] == operations <= 5
    assert {problem.meta["steps"] for problem in problems} == {3, 4, 5}
    assert max(number for problem in problems for number in problem.meta["operands"]) > 950


def test_no_sentence_and_no_computation_of_the_test_is_in_another_split():
    known = {split: {each for kind in SENTENCES[split].values() for each in kind} for split in ("train", "test")}
    assert not {each for form in known["train"] for each in _drawn(form)} & known["test"]
    used = {split: some("word_arithmetic", split, 1500) for split in SPLITS}
    for split, other in itertools.combinations(SPLITS, 2):
        ours, theirs = ({_key(problem) for problem in used[name]} for name in (split, other))
        assert not ours & theirs
    for split in SPLITS:
        sentences = {sentence for problem in used[split] for sentence in problem.meta["sentences"]}
        assert sentences <= known["test" if split == "test" else "train"]
        assert len(sentences) > 0.9 * len(known["test" if split == "test" else "train"]), "nearly every sentence occurs"


def test_the_second_held_out_set_is_told_with_sentences_of_its_own(benchmark_named):
    second = benchmark_named("word_problems_second")
    sentences = {each for forms in json.loads(second.SENTENCES.read_text("utf-8")).values() for each in forms}
    assert len(sentences) > 30
    others = {
        each for split in SENTENCES.values() for forms in split.values() for form in forms for each in _drawn(form)
    }
    assert not sentences & others
    problems = list(itertools.islice(second.second_problems(), 100))
    assert {sentence for problem in problems for sentence in problem.meta["sentences"]} == sentences
    for problem in problems:
        assert sorted(map(int, re.findall(r"\d+", problem.question))) == sorted(problem.meta["operands"])


def test_no_sentence_of_training_counts_an_item_as_something_else():
    items = {name for plural in ITEMS for name in (plural, plural.removesuffix("s"))}
    for kind, forms in SENTENCES["train"].items():
        for form in forms:
            assert not items & set(re.findall(r"[a-z]+", form.replace("{items}", ""))), (kind, form)


def _drawn(form):
    """Every sentence that can be drawn from a form."""
    parts = re.split(r"\[(.*?)\]", form)
    return map("".join, itertools.product(*(part.split("|") if n % 2 else [part] for n, part in enumerate(parts))))


def _key(problem):
    operands = sorted(problem.meta["operands"])
    return "".join(sorted(sign for sign in problem.meta["program"] if sign in "+-*/")), tuple(operands)


@pytest.mark.parametrize(
    ("seed", "digest"),
    [(0, "268b28106830bff1"), (1, "ccbb459a3bdaa9f6"), (2, "83ba74b6f2d2a7cb")],
)
def test_the_test_problems_of_the_experiments_are_always_the_same(seed, digest):
    problems = some("word_arithmetic", "test", 500, seed=seed)
    assert len({problem.question for problem in problems}) == 500
    text = "\n".join(f"{problem.question}\t{problem.answer}" for problem in problems)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest


def test_traces_hold_one_program_each_and_no_sentence_of_the_test():
    traces = list(
        generate_traces(
            "rstar2/MathFence-v0", "word_arithmetic", episodes=12, env_options={"dialect": "fenced:compact=true"}
        )
    )
    assert len(traces) == 12
    test = {re.split(r"\{\w+\}", each)[0] for kind in SENTENCES["test"].values() for each in kind} - {""}
    for trace in traces:
        assert [str(status) for status in trace.statuses] == ["ok"]
        assert trace.reward == 1
        assert not any(begin in trace.messages[1].content for begin in test if len(begin) > 8)


def test_steps_that_leave_no_problem_are_refused():
    with pytest.raises(ConfigurationError, match="none of 10000 random problems"):
        load_problems("word_arithmetic:least_steps=5,most_steps=4")[0]


class TestGsmSymbolic:
    @pytest.fixture(autouse=True)
    def _installed(self):
        pytest.importorskip("reasoning_gym")

    def test_splits_share_no_template_and_together_have_them_all(self):
        from rstar2_env.problems.gsm_symbolic import templates

        held = {split: set(templates(split)) for split in SPLITS}
        assert sum(map(len, held.values())) == len(set.union(*held.values())) == 85
        assert len(held["test"]) == 17
        for split in SPLITS:
            problems = some("gsm_symbolic", split, 60)
            assert {problem.meta["template"] for problem in problems} <= held[split]

    def test_a_program_prints_the_answer_from_the_numbers_of_the_question(self):
        programs = [problem for problem in some("gsm_symbolic", "train", 300) if "program" in problem.meta]
        assert len(programs) > 50
        assert len({problem.meta["template"] for problem in programs}) >= 10
        for problem in programs:
            assert float(printed(problem.meta["program"])) == pytest.approx(float(problem.answer))

    def test_equations_become_lines_that_use_earlier_results(self):
        from rstar2_env.problems.gsm_symbolic import program_of

        solution = "First 35 × 3 = 105 kiwis. 105 + 35 = 140 in all. 99 + 1 = 100. Then 140 - 8 = $132. #### 132"
        assert program_of(solution, "132", "35 apples, 3 times as many kiwis, 8 eaten") == "a=35*3\nb=a+35\nprint(b-8)"

    def test_a_number_from_nowhere_or_a_wrong_equation_gives_no_program(self):
        from rstar2_env.problems.gsm_symbolic import program_of

        assert program_of("240 - 153 = 87", "87", "240 toys, 74 blocks") is None
        assert program_of("2 + 2 = 5", "5", "2 and 2") is None

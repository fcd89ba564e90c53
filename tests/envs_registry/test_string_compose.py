"""rstar2/StringCompose-v0: what is shown is what runs, sets are disjoint, levels nest, answers are plain strings."""

import ast
import re

import gymnasium as gym
import pytest

import rstar2_env  # noqa: F401  # registers the id
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.envs_registry.string_compose import StringCompose
from rstar2_env.worlds import UnreadableAnswerError
from rstar2_env.worlds.string_functions import functions

FUNCTIONS = functions()

GOLDEN = [
    ("shuffle", ("abcdef",), "afedcb"),
    ("add digit", ("abc", 1), "abc1"),
    ("add digit", ("abc", 3), "abc1"),
    ("add digit", ("a7c", 2), "a7c"),
    ("palindrome", ("ab", 2), "abba"),
    ("palindrome", ("aba", 3), "aba"),
    ("interlace by recursion", ("abc", "XY"), "aXbYc"),
    ("interlace", ("ab", "WXYZ"), "aWbXYZ"),
    ("repeat", ("ab", 3), "ababab"),
    ("repeat by steps", ("ab", 3), "ababab"),
    ("sort", ("hello",), "ehllo"),
    ("reverse words", ("one two",), "two one"),
    ("add prefix", ("ab", "xy"), "xyab"),
    ("add suffix", ("ab", "xy"), "abxy"),
    ("mirror", ("abc",), "abccba"),
    ("shift letters", ("xyZ1", 3), "abC1"),
    ("insert separator", ("abc", "_"), "a_b_c"),
    ("wrap characters", ("ab",), "«a»«b»"),
    ("reverse", ("abc",), "cba"),
    ("rotate by steps", ("abcd", 3), "dabc"),
    ("rotate", ("ab", 3), "ba"),
    ("drop last if odd", ("abc",), "ab"),
    ("drop last if odd", ("ab",), "ab"),
    ("remove vowels", ("aEbci",), "bc"),
    ("alternate case", ("aBcD",), "aBcD"),
    ("number vowels", ("aeioux",), "12345x"),
    ("double", ("ab",), "aabb"),
    ("drop repeats", ("aabba",), "aba"),
    ("letters only", ("a1-b«",), "ab"),
]


def some(count, split="train", **knobs):
    source = StringCompose(**knobs).source(split)
    return [source[index] for index in range(count)]


def depth(node):
    """How deeply calls, sums and methods are nested."""
    inner = max((depth(child) for child in ast.iter_child_nodes(node)), default=0)
    return inner + isinstance(node, ast.Call | ast.BinOp)


def returned(problem):
    namespace = {}
    exec(problem.meta["program"], namespace)
    return namespace["main_solution"](problem.meta["input"])


@pytest.mark.parametrize(("title", "arguments", "value"), GOLDEN)
def test_a_function_does_what_it_is_called(title, arguments, value):
    assert FUNCTIONS[title].call(*arguments) == value


def test_thirteen_functions_are_for_training_and_twelve_others_for_evaluation():
    names = {kind: {f.name for f in FUNCTIONS.values() if f.split == kind} for kind in ("train", "eval")}
    assert names["train"] == {f"func_{number}" for number in range(13)}
    assert names["eval"] == {f"func_{number}" for number in range(13, 25)}
    assert {title for title, *_ in GOLDEN} == set(FUNCTIONS)


def test_every_function_takes_the_empty_string():
    arguments = {"count": [2], "turn": [3], "shift": [1], "depth": [3], "affix": ["xy"], "mark": ["-"], "binary": [""]}
    for function in FUNCTIONS.values():
        assert isinstance(function.call("", *arguments.get(function.kind, [])), str)


@pytest.mark.parametrize("level", range(1, 9))
def test_the_program_returns_the_answer_reads_its_input_and_is_as_deep_as_the_level(level):
    for split in ("train", "test"):
        for problem in some(25, split, level=level):
            meta = problem.meta
            assert returned(problem) == problem.answer == meta["output"] != ""
            assert len(problem.answer) <= 100
            (main,) = [
                node
                for node in ast.parse(meta["program"]).body
                if isinstance(node, ast.FunctionDef) and node.name == "main_solution"
            ]
            assert depth(main.body[0].value) == level
            assert "x" in {node.id for node in ast.walk(main) if isinstance(node, ast.Name)}
            assert meta["program"] in problem.question
            assert f'main_solution("{meta["input"]}")' in problem.question
            assert re.fullmatch("[a-z]{3,10}", meta["input"])


def test_the_functions_of_the_splits_are_disjoint():
    used = {
        split: {title for p in some(300, split, level=4) for title in p.meta["functions"]}
        for split in ("train", "validation", "test")
    }
    assert used["train"] == {title for title, f in FUNCTIONS.items() if f.split == "train"}
    assert used["test"] == used["validation"] == {title for title, f in FUNCTIONS.items() if f.split == "eval"}


@pytest.mark.parametrize(("functions", "count"), [("train", 13), ("eval", 12), ("all", 25)])
def test_a_set_can_be_chosen_for_any_split(functions, count):
    problems = some(250, "test", level=4, functions=functions)
    assert len({title for p in problems for title in p.meta["functions"]}) == count


def test_hidden_sources_leave_the_names():
    for problem in some(30, show_source=False):
        assert problem.question.count("def ") == 1
        assert "func_" in problem.question or re.search(
            r"\.(upper|lower|capitalize|swapcase)\(\)| \+ ", problem.question
        )
        assert returned(problem) == problem.answer


def test_kinds_of_nodes_come_in_the_published_shares():
    mains = [p.meta["program"].rpartition("return ")[2] for p in some(3000, level=1, functions="all")]
    binary = sum(" + " in main or main.startswith(("func_10(", "func_16(")) for main in mains)
    methods = sum(main.endswith(("upper()", "lower()", "capitalize()", "swapcase()")) for main in mains)
    # A call of two strings reads the input three times in four, one of one string once in two: 0.3 of 1.1.
    assert binary / 3000 == pytest.approx(0.27, abs=0.03)
    assert methods / 3000 == pytest.approx(0.016 * 0.73 / 0.8, abs=0.01)


META = {"output": 'a_b|"c', "input": "abc"}


@pytest.mark.parametrize(
    "answer", ['a_b|"c', ' a_b|"c\n', '"a_b|"c"', "'a_b|\"c'", 'a\\_b|"c', '\\text{a_b|"c}', '{"output": "a_b|\\"c"}']
)
def test_quotes_and_type_around_it_do_not_matter(answer):
    assert StringCompose().solves(META, answer)


@pytest.mark.parametrize("answer", ["", 'A_b|"c', 'a_b|"c.', 'ab|"c', '{"output": "x"}', "[]"])
def test_every_letter_does(answer):
    assert not StringCompose().solves(META, answer)


@pytest.mark.parametrize("answer", ['{"output": 3}', '{"answer": "x"}', "{", "{}"])
def test_json_without_an_output_is_unreadable(answer):
    with pytest.raises(UnreadableAnswerError):
        StringCompose().solves(META, answer)


@pytest.mark.parametrize(
    "knobs", [{"level": 0}, {"level": 9}, {"functions": "both"}, {"show_source": 1}, {"longest": 5}]
)
def test_knobs_out_of_range_are_refused(knobs):
    (knob,) = knobs
    with pytest.raises(ConfigurationError, match=f"{knob} must be"):
        gym.make("rstar2/StringCompose-v0", **knobs)

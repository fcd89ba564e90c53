"""Claims about tool-use traces: real tool responses, kept only as meant, mistakes at their rates and independent."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import gymnasium as gym
import pytest
from places import SHARED

import rstar2_env  # noqa: F401 - registers the environment
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.problems import Problem, load_problems
from rstar2_env.testing.stub_sandbox import StubSandbox
from rstar2_env.traces.writer import Trace, generate_traces

ID = "rstar2/MathTool-v0"
SHARED = SHARED / "data"
RATES = {"error_rate": 0.35, "wrong_rate": 0.3, "format_error_rate": 0.25}
# Their calls fail before any program runs, so that a stub can stand in for the sandbox.
UNRUN = ("broken_json", "wrong_argument", "unknown_tool")
WORKED = Problem(
    "worked",
    "She had 16 eggs, ate 3 and used 4. She sells the others for 2 each. How much?",
    "18",
    meta={
        "calculations": ["16-3-4=9", "9*2=18"],
        "solution": "She sells 16 - 3 - 4 = <<16-3-4=9>>9 eggs.\nShe makes 9 * 2 = $<<9*2=18>>18.",
    },
)


def stub() -> gym.Env:
    return gym.make(ID, sandbox=StubSandbox("1\n"), disable_env_checker=True)


def many(n: int = 600, **options: object) -> list[Trace]:
    return list(
        generate_traces(stub, "arithmetic", episodes=n, workers=4, **{"call_mistakes": UNRUN, **RATES, **options})
    )


def turns(trace: Trace) -> list[str]:
    return [message.content for message in trace.messages if message.role == "assistant"]


@pytest.fixture(scope="module")
def real() -> list[Trace]:
    return list(generate_traces(ID, "arithmetic", episodes=120, **RATES))


def test_traces_come_out_as_meant_in_the_real_environment(real):
    assert len(real) == 120
    for trace in real:
        assert all(status is ToolStatus.OK for status in trace.statuses[bool(trace.call_mistake) :])
        assert trace.reward == float(not trace.wrong and trace.format_mistake in (None, "two_answers"))


def test_the_tools_own_words_are_in_the_trace(real):
    for trace in real:
        problem = load_problems("arithmetic").get(trace.problem_id)
        assert f"<tool_response>\n{problem.answer}\n</tool_response>" in trace.messages[-2].content


def test_a_failing_first_call_is_mended_by_the_next(real):
    failing = [trace for trace in real if trace.call_mistake]
    assert len({trace.call_mistake for trace in failing}) >= 4
    for trace in failing:
        assert trace.statuses[0].is_error
        assert len(trace.statuses) == 2
        expression = load_problems("arithmetic").get(trace.problem_id).meta["expression"]
        assert f"print({expression})" in turns(trace)[1]


def test_a_wrong_trace_has_the_right_number_from_the_tool_and_another_in_the_answer(real):
    wrong = [trace for trace in real if trace.wrong]
    assert wrong
    for trace in wrong:
        answer = load_problems("arithmetic").get(trace.problem_id).answer
        assert f"\n{answer}\n" in trace.messages[-2].content
        assert f"boxed{{{answer}}}" not in turns(trace)[-1]


def test_a_trace_without_mistakes_is_one_short_call_and_the_answer():
    (trace,) = generate_traces(ID, [Problem("p", "q", "34", meta={"expression": "12+7*3+1"})])
    assert len(turns(trace)) == 2
    assert '"code": "print(12+7*3+1)"' in turns(trace)[0]
    assert turns(trace)[1] == "<answer>\\boxed{34}</answer>"
    assert (trace.reward, trace.end, trace.statuses, trace.answer_tags) == (1.0, "answered", (ToolStatus.OK,), 1)


def test_worked_calculations_become_a_call_each_with_the_solutions_words():
    (trace,) = generate_traces(ID, [WORKED])
    first, second, last = turns(trace)
    assert first.startswith("<reason>She sells 16 - 3 - 4</reason>\n<tool_call>")
    assert "print(16-3-4)" in first
    assert second.startswith("<reason>9 eggs.\nShe makes 9 * 2</reason>\n<tool_call>")
    assert last == "<reason>18.</reason>\n<answer>\\boxed{18}</answer>"


def test_a_row_of_gsm8ks_own_file_becomes_the_same_trace(tmp_path):
    answer = f"{WORKED.meta['solution']}\n#### {WORKED.answer}"
    (tmp_path / "test.jsonl").write_text(json.dumps({"question": WORKED.question, "answer": answer}))
    (expected,) = generate_traces(ID, [WORKED])
    (trace,) = generate_traces(ID, f"{tmp_path}/test.jsonl:like=gsm8k")
    assert trace.messages == expected.messages


def test_all_calculations_fit_in_one_call_and_words_can_be_left_out():
    (trace,) = generate_traces(ID, [WORKED], one_call=True, reasons=False)
    assert "print(16-3-4)\\nprint(9*2)" in turns(trace)[0]
    assert turns(trace)[1] == "<answer>\\boxed{18}</answer>"
    assert "<tool_response>\n9\n18\n</tool_response>" in trace.messages[-2].content


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (Problem("plain", "q", "1"), "no program, no calculations and no expression"),
        (Problem("liar", "q", "x+1", meta={"calculations": ["1/0=1"]}), "should work was reported as exception"),
        (Problem("silent", "q", "1", meta={"expression": "end=''"}), "should work was reported as empty"),
    ],
)
def test_a_trace_that_does_not_come_out_is_dropped_and_told(problem, why):
    told: list[tuple[str, str]] = []
    traces = generate_traces(ID, [problem, WORKED], dropped=lambda *drop: told.append((drop[0].id, drop[1])))
    assert [trace.problem_id for trace in traces] == ["worked"]
    assert [name for name, _ in told] == [problem.id]
    assert why in told[0][1]


def test_a_right_trace_that_earns_nothing_is_dropped():
    class Deaf(gym.Wrapper):
        def step(self, action):
            observation, _, terminated, truncated, info = self.env.step(action)
            return observation, 0.0, terminated, truncated, {**info, **({"correct": False} if terminated else {})}

    told: list[str] = []
    assert not list(generate_traces(lambda: Deaf(stub()), [WORKED], dropped=lambda problem, why: told.append(why)))
    assert told == ["the answer should have been right, but it earned 0"]


def test_rates_are_met_and_independent_of_one_another():
    traces = many(2000)
    assert len(traces) == 2000
    hit = {
        "error": [trace.call_mistake is not None for trace in traces],
        "wrong": [trace.wrong for trace in traces],
        "format": [trace.format_mistake is not None for trace in traces],
    }
    for (name, marks), rate in zip(hit.items(), RATES.values(), strict=True):
        assert abs(sum(marks) / 2000 - rate) < 0.05, name
    for one, two in (("error", "wrong"), ("error", "format"), ("wrong", "format")):
        both = sum(a and b for a, b in zip(hit[one], hit[two], strict=True)) / 2000
        assert abs(both - sum(hit[one]) * sum(hit[two]) / 2000**2) < 0.03, (one, two)


def test_changing_one_rate_leaves_the_other_mistakes_where_they_were():
    base, calm = many(200), many(200, error_rate=0.0)
    assert not any(trace.call_mistake for trace in calm)
    for mark in ("wrong", "format_mistake", "problem_id"):
        assert [getattr(trace, mark) for trace in base] == [getattr(trace, mark) for trace in calm]
    assert [turns(trace)[-1] for trace in base] == [turns(trace)[-1] for trace in calm]


def test_the_same_seed_gives_the_same_traces_in_the_same_order_with_any_workers():
    first = [trace.record() for trace in many(60, seed=3)]
    again = generate_traces(stub, "arithmetic", episodes=60, workers=1, seed=3, call_mistakes=UNRUN, **RATES)
    assert [trace.record() for trace in again] == first
    assert [trace.record() for trace in many(60, seed=4)] != first


def test_traces_can_be_taken_one_at_a_time_and_given_up():
    before = threading.active_count()
    made = []

    def counted() -> gym.Env:
        made.append(stub())
        return made[-1]

    traces = generate_traces(counted, "arithmetic", episodes=5000, workers=3)
    assert next(traces).reward == 1.0
    traces.close()
    assert len(made) == 3
    assert threading.active_count() == before


def test_an_environment_that_was_handed_in_is_used_and_stays_open():
    env = gym.make(ID)
    try:
        assert len(list(generate_traces(env, "arithmetic", episodes=6, workers=3))) == 6
        assert env.reset(seed=0)
    finally:
        env.close()


def test_an_unavailable_tool_drops_the_trace():
    told: list[str] = []
    lost = StubSandbox(ToolStatus.UNAVAILABLE)
    traces = generate_traces(
        lambda: gym.make(ID, sandbox=lost), "arithmetic", episodes=2, dropped=lambda problem, why: told.append(why)
    )
    assert list(traces) == []
    assert told == ["the environment was not available"] * 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"episodes": None}, "without end"),
        ({"error_rate": 1.5}, "error_rate must be a number from 0 to 1"),
        ({"wrong_rate": -0.1}, "wrong_rate must be a number from 0 to 1"),
        ({"call_mistakes": ("typo",)}, "call_mistakes"),
        ({"format_mistakes": ()}, "format_mistakes"),
        ({"workers": 0}, "at least 1"),
        ({"eror_rate": 0.1}, "eror_rate"),
    ],
)
def test_options_that_do_not_fit_are_named_at_the_call(options, said):
    with pytest.raises(ConfigurationError, match=said):
        generate_traces(ID, "arithmetic", **{"episodes": 5, **options})


def test_a_record_is_json_with_messages_as_chat_templates_take_them(real):
    record = json.loads(json.dumps(real[0].record()))
    assert [set(message) for message in record["messages"]] == [{"role", "content"}] * len(record["messages"])
    assert [message["role"] for message in record["messages"][:3]] == ["system", "user", "assistant"]


def gsm8k_train() -> Path:
    file = SHARED / "gsm8k_train.jsonl"
    if not file.exists():
        pytest.skip("gsm8k_train.jsonl is not beside the repository, under shared/data")
    return file


@pytest.mark.slow
def test_gsm8k_train_becomes_traces_that_earn_their_reward():
    told: list[str] = []
    traces = list(
        generate_traces(ID, gsm8k_train(), episodes=60, error_rate=0.3, dropped=lambda problem, why: told.append(why))
    )
    assert len(traces) >= 55, told
    assert all(trace.reward == 1.0 for trace in traces)


@pytest.mark.proof
def test_all_of_gsm8k_train_with_calculations_becomes_traces(record_property):
    told: list[str] = []
    traces = list(generate_traces(ID, gsm8k_train(), one_call=True, dropped=lambda problem, why: told.append(why)))
    assert all(trace.reward == 1.0 for trace in traces)
    assert len(traces) + len(told) == 7473
    record_property("traces", len(traces))
    record_property("dropped", len(told))
    assert set(told) == {"the problem has no program, no calculations and no expression"}
    assert len(told) == 95


class TestTheEnvironment:
    def test_it_is_made_with_options_and_wrappers(self):
        (trace,) = generate_traces(
            ID,
            [WORKED],
            env_options={"sandbox": StubSandbox("9\n")},
            wrappers=["observation_limit:limit=1,cut=tail", "fault_injection:rate=1,kinds=wrong_order"],
        )
        shown = [message.content for message in trace.messages if message.role == "user"][1:]
        assert len(shown) == 2
        assert all("9\n[... 1 characters left out ...]" in text for text in shown)

    def test_one_that_is_there_already_takes_neither(self):
        with pytest.raises(ConfigurationError, match="already exists"):
            generate_traces(stub(), [WORKED], wrappers=["save_state"])

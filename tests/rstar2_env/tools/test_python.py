"""The Python tool words every outcome for the model. The wording is tested on outcomes, the outcomes in the sandbox."""

import pickle

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import LocalSandbox
from rstar2_env.sandbox.job import Outcome
from rstar2_env.sandbox.limits import Limits
from rstar2_env.testing import StubSandbox
from rstar2_env.tools import PYTHON_TOOL_NAME, CallContext, PythonTool, Tool, ToolCall, ToolChain

WHERE = CallContext(seed=1, number=0, turn=0)
ARGUMENTS = {"code": "print(1)", "input": ""}


def shown(outcome, **options):
    return PythonTool(StubSandbox(outcome), **options).call(ARGUMENTS, WHERE)


class TestWording:
    @pytest.mark.parametrize("stdout", ["1\n", "no line break", "\n\n  spaces  \n\n", "<answer>7</answer>", "\0"])
    def test_stdout_is_shown_as_it_is(self, stdout):
        assert shown(Outcome(ToolStatus.OK, exit_code=0, stdout=stdout)).text == stdout

    def test_the_value_of_the_last_expression_follows_on_a_line_of_its_own(self):
        assert shown(Outcome(ToolStatus.OK, stdout="a", value="7")).text == "a\n7"
        assert shown(Outcome(ToolStatus.OK, stdout="a\n", value="7")).text == "a\n7"
        assert shown(Outcome(ToolStatus.OK, value="7")).text == "7"

    def test_a_warning_on_stderr_does_not_make_an_error(self):
        result = shown(Outcome(ToolStatus.OK, exit_code=0, stdout="3\n", stderr="UserWarning: careful\n"))
        assert (result.status, result.error_type) == (ToolStatus.OK, None)
        assert result.text == "3\nUserWarning: careful\n"

    def test_an_error_shows_what_was_printed_before_and_then_the_traceback(self):
        trace = 'Traceback (most recent call last):\n  File "<cell>", line 2, in <module>\nValueError: no\n'
        outcome = Outcome(
            ToolStatus.EXCEPTION, exit_code=1, stdout="before\n", error_type="ValueError", traceback=trace
        )
        result = shown(outcome)
        assert result.text == "before\n" + trace
        assert (result.error_type, result.exit_code) == ("ValueError", 1)

    @pytest.mark.parametrize("status", [ToolStatus.EXCEPTION, ToolStatus.SYNTAX_ERROR, ToolStatus.MEMORY])
    def test_tracebacks_can_be_left_out(self, status):
        outcome = Outcome(status, error_type="E", error_message="no", traceback="Traceback ...\nE: no\n")
        assert "Traceback" in shown(outcome).text
        assert "Traceback" not in shown(outcome, traceback=False).text

    def test_without_a_traceback_an_exception_is_its_type_and_message(self):
        outcome = Outcome(ToolStatus.EXCEPTION, stdout="a", error_type="E", error_message="no", traceback="long")
        assert shown(outcome, traceback=False).text == "a\nE: no"

    def test_a_syntax_error_shows_its_message(self):
        outcome = Outcome(
            ToolStatus.SYNTAX_ERROR, error_type="SyntaxError", traceback="SyntaxError: '(' was never closed\n"
        )
        assert "never closed" in shown(outcome).text

    def test_an_exit_without_an_exception_says_its_code_or_signal(self):
        assert shown(Outcome(ToolStatus.EXCEPTION, exit_code=3)).text == "The program ended with exit code 3."
        signal = shown(Outcome(ToolStatus.EXCEPTION, signal="SIGSEGV"))
        assert signal.text == "The program was ended by the signal SIGSEGV."

    def test_a_timeout_says_so_with_what_was_printed_before(self):
        result = shown(Outcome(ToolStatus.TIMEOUT, stdout="step 1\n"), limits=Limits(wall_s=2.5))
        assert result.text == "step 1\nThe program was stopped: it ran longer than 2.5 s."
        assert result.error_type == "timeout"

    @pytest.mark.parametrize("outcome", [{"signal": "SIGXCPU"}, {"signal": "SIGKILL", "wall_s": 1.0}])
    def test_cpu_time_that_ran_out_before_the_clock_is_told_as_such(self, outcome):
        assert "CPU time" in shown(Outcome(ToolStatus.TIMEOUT, **outcome), limits=Limits(wall_s=60)).text

    def test_memory_says_the_limit_after_the_place(self):
        outcome = Outcome(ToolStatus.MEMORY, error_type="MemoryError", traceback="Traceback ...\nMemoryError\n")
        text = shown(outcome, limits=Limits(memory_mb=64)).text
        assert text == "Traceback ...\nMemoryError\nThe program was stopped: it used more than 64 MiB of memory."

    def test_too_much_output_says_the_limit(self):
        text = shown(Outcome(ToolStatus.OUTPUT_LIMIT, stdout="x"), limits=Limits(output_bytes=10)).text
        assert text == "x\nThe program was stopped: it wrote more than 10 bytes."

    def test_a_blocked_program_says_for_what(self):
        assert "opened a socket" in shown(Outcome(ToolStatus.BLOCKED, error_message="it opened a socket")).text
        assert "not allowed" in shown(Outcome(ToolStatus.BLOCKED)).text

    def test_an_unavailable_tool_blames_nobody(self):
        result = shown(Outcome(ToolStatus.UNAVAILABLE))
        assert result.text == "The tool is not available at the moment; the program was not run."
        assert result.error_type is None

    def test_an_empty_outcome_tells_how_to_see_something(self):
        assert "use print" in shown(Outcome(ToolStatus.EMPTY, exit_code=0)).text

    @pytest.mark.parametrize(
        "status", sorted(set(ToolStatus) - {"malformed", "unknown_tool", "invalid_arguments", "ok"})
    )
    def test_no_status_is_without_words(self, status):
        assert shown(status).text.strip()
        assert shown(status).status is status


class TestCutting:
    def test_long_output_is_cut_in_the_middle_and_marked(self):
        result = shown(Outcome(ToolStatus.OK, stdout="a" * 60 + "b" * 60), max_output=20)
        assert result.text == "a" * 10 + "\n[... 100 characters left out ...]\n" + "b" * 10
        assert (result.status, result.truncated) == (ToolStatus.OK, True)

    def test_the_end_of_a_traceback_survives_the_cut(self):
        outcome = Outcome(ToolStatus.EXCEPTION, stdout="x" * 10_000, error_type="E", traceback="E: the message\n")
        assert shown(outcome, max_output=100).text.endswith("E: the message\n")

    def test_it_can_be_counted_in_tokens(self):
        class Bytes:
            def encode(self, text, *, add_special_tokens=True):
                return list(text.encode())

            def decode(self, token_ids):
                return bytes(token_ids).decode()

        result = shown(Outcome(ToolStatus.OK, stdout="abcdef"), max_output=2, tokenizer=Bytes())
        assert result.text == "a\n[... 4 tokens left out ...]\nf"

    def test_what_the_sandbox_left_out_is_told_in_bytes(self):
        outcome = Outcome(ToolStatus.OK, stdout="x", truncated=True, stdout_left_out=5)
        assert shown(outcome).text == "x\n[... 5 bytes left out ...]"
        assert shown(outcome).truncated

    @pytest.mark.parametrize("limit", [0, -1, 2.5, None])
    def test_a_limit_that_is_no_positive_integer_is_refused(self, limit):
        with pytest.raises(ConfigurationError, match="max_output"):
            PythonTool(StubSandbox(), max_output=limit)


class TestJobs:
    def test_code_input_and_limits_reach_the_sandbox(self):
        sandbox, limits = StubSandbox(), Limits(wall_s=1)
        PythonTool(sandbox, limits=limits).call({"code": "c", "input": "i"}, WHERE)
        (job,) = sandbox.jobs
        assert (job.code, job.stdin, job.limits, job.session) == ("c", "i", limits, None)

    def test_no_two_calls_of_an_episode_and_no_two_episodes_share_a_seed(self):
        sandbox = StubSandbox()
        tool = PythonTool(sandbox)
        for seed in range(50):
            for number in range(50):
                tool.call(ARGUMENTS, CallContext(seed, number, 0))
        assert len({job.seed for job in sandbox.jobs}) == 2500

    def test_the_same_call_has_the_same_seed(self):
        sandbox = StubSandbox()
        for _ in range(2):
            PythonTool(sandbox).call(ARGUMENTS, CallContext(7, 3, 1))
        assert sandbox.jobs[0].seed == sandbox.jobs[1].seed

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"code": "1"}, "lacks the required 'input'"),
            ({"input": ""}, "lacks the required 'code'"),
            ({"code": 1, "input": ""}, "code must be of type string, not integer"),
            ({"code": "1", "input": None}, "input must be of type string, not null"),
            ({"code": "1", "input": "", "timeout": 60}, "unknown 'timeout'; known: 'code', 'input'"),
        ],
    )
    def test_arguments_that_do_not_fit_run_nothing(self, arguments, words):
        sandbox = StubSandbox()
        result = ToolChain([PythonTool(sandbox)]).call(ToolCall(PYTHON_TOOL_NAME, arguments), WHERE)
        assert result.status is ToolStatus.INVALID_ARGUMENTS
        assert words in result.text
        assert sandbox.jobs == []


class TestTheSandboxBehindIt:
    def test_it_is_a_tool_of_the_papers_name(self):
        tool = PythonTool(StubSandbox())
        assert isinstance(tool, Tool)
        assert tool.spec.name == PYTHON_TOOL_NAME == "execute_python_code_with_standard_io"

    def test_one_that_was_handed_in_stays_open(self):
        sandbox = StubSandbox()
        tool = PythonTool(sandbox)
        tool.call(ARGUMENTS, WHERE)
        tool.close()
        assert not sandbox.closed
        assert tool.call(ARGUMENTS, WHERE).status is ToolStatus.OK

    def test_none_is_started_before_the_first_call(self):
        PythonTool("no such provider").close()

    def test_an_unknown_provider_is_named(self):
        with pytest.raises(KeyError, match="no such provider"):
            PythonTool("no such provider").call(ARGUMENTS, WHERE)

    def test_a_copy_runs_in_a_sandbox_of_its_own(self):
        tool = PythonTool(StubSandbox("one"))
        tool.call(ARGUMENTS, WHERE)
        assert pickle.loads(pickle.dumps(tool)).call(ARGUMENTS, WHERE).text == "one"


def test_the_policy_is_told_which_packages_there_are():
    said = PythonTool({"provider": "local", "packages": ["sympy", "no-such-package"]}).spec.description
    assert said.endswith("Installed packages: sympy.")
    assert PythonTool({"provider": "local", "packages": []}).spec.description.endswith("and no package.")
    assert PythonTool("docker").spec.description.endswith("NumPy and SymPy are installed.")
    with LocalSandbox(workers=1, preload=(), packages=("mpmath",)) as sandbox:
        assert PythonTool(sandbox).spec.description.endswith("Installed packages: mpmath.")

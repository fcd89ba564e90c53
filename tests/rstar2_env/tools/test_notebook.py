"""The notebook tool: one session an episode, what is said about it, and what becomes of one that was lost."""

import os
import pickle
import time

import pytest
from cell_sandbox import CellSandbox

from rstar2_env.core.errors import SandboxUnavailableError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox.job import Outcome
from rstar2_env.sandbox.limits import Limits
from rstar2_env.testing import StubSandbox
from rstar2_env.tools import CallContext, EpisodeTool, NotebookTool, ToolChain


@pytest.fixture
def sandbox():
    return CellSandbox()


@pytest.fixture
def tool(sandbox):
    return NotebookTool(sandbox)


def run(tool, *codes, start=0):
    """The results of cells, one after the other."""
    return [tool.call({"code": code}, CallContext(7, start + n, n)) for n, code in enumerate(codes)]


class TestASession:
    def test_keeps_what_earlier_cells_defined(self, tool):
        first, second = run(tool, "x = 20", "x + 1")
        assert (first.status, first.session) == (ToolStatus.EMPTY, "new")
        assert (second.status, second.session, second.text) == (ToolStatus.OK, "kept", "21")

    def test_ends_with_the_episode_and_the_next_one_has_another(self, tool, sandbox):
        run(tool, "x = 1")
        (name,) = sandbox.sessions
        tool.end_episode()
        assert sandbox.ended == [name]
        (result,) = run(tool, "x")
        assert (result.status, result.session) == (ToolStatus.EXCEPTION, "new")
        assert sandbox.sessions.isdisjoint({name})

    def test_ends_with_the_tool(self, tool, sandbox):
        run(tool, "1")
        tool.close()
        tool.close()
        assert not sandbox.sessions

    def test_is_shared_with_no_other_tool(self, sandbox):
        first, second = NotebookTool(sandbox), NotebookTool(sandbox)
        run(first, "x = 1")
        assert run(second, "x")[0].error_type == "NameError"
        assert len(sandbox.sessions) == 2

    def test_is_ended_by_a_chain_of_tools(self, tool, sandbox):
        assert isinstance(tool, EpisodeTool)
        run(tool, "1")
        ToolChain([tool]).end_episode()
        assert not sandbox.sessions

    def test_a_cell_without_a_session_is_an_error_that_says_what_to_do(self):
        class Old(StubSandbox):
            def _in_session(self, name, outcome):
                return outcome

        with pytest.raises(SandboxUnavailableError, match="another provider"):
            run(NotebookTool(Old()), "1")


class TestWhatIsSaid:
    def test_an_interrupted_cell_keeps_the_state_and_says_so(self, tool):
        _, stopped, after = run(tool, "x = 1", "raise TimeoutError", "x")
        assert (stopped.status, stopped.session) == (ToolStatus.TIMEOUT, "interrupted")
        assert stopped.text == (
            "The cell was interrupted: it ran longer than 5 s.\n"
            "What it had done by then is kept, and so are the variables and imports of earlier cells."
        )
        assert after.text == "1"

    def test_a_cell_that_ends_its_session_is_the_policys_error_and_the_next_starts_clean(self, tool):
        _, exited, after = run(tool, "x = 1", "raise SystemExit", "x")
        assert (exited.status, exited.session) == (ToolStatus.EXCEPTION, "ended")
        assert exited.text.endswith(
            "The cell exited. All variables and imports are gone: the next cell starts in a fresh notebook."
        )
        assert (after.error_type, after.session) == ("NameError", "new")

    def test_the_note_is_not_cut_with_the_output(self, sandbox):
        tool = NotebookTool(sandbox, max_output=40)
        (result,) = run(tool, "print('x' * 500)\nraise TimeoutError")
        assert result.text.endswith("of earlier cells.")

    def test_the_record_names_the_sessions_state_and_is_the_same_every_time(self, sandbox):
        codes = ("x = 1", "x", "raise TimeoutError", "raise SystemExit", "2")
        records = [[result.record() for result in run(NotebookTool(sandbox), *codes)] for _ in range(2)]
        assert records[0] == records[1]
        assert [record["session"] for record in records[0]] == ["new", "kept", "interrupted", "ended", "new"]


class TestALostSession:
    def test_is_rebuilt_from_its_cells_and_nobody_notices(self, tool, sandbox):
        run(tool, "x = random.random()", "not python", "y = x + 1")
        state = dict(next(iter(sandbox.states.values())))
        sandbox.lose()
        (result,) = run(tool, "(x, y)", start=3)
        assert (result.session, result.text) == ("kept", repr((state["x"], state["y"])))

    def test_is_rebuilt_in_a_copy_of_the_tool(self, tool):
        run(tool, "x = 5")
        copy = pickle.loads(pickle.dumps(tool))
        assert [result.text for result in run(copy, "x", start=1)] == ["5"]

    def test_is_rebuilt_in_a_forked_process_and_the_parents_lives_on(self, tool, sandbox):
        run(tool, "x = 5")
        reading, writing = os.pipe()
        if (child := os.fork()) == 0:
            text = run(tool, "x += 1", "x", start=1)[-1].text
            tool.close()
            os.write(writing, text.encode())
            os._exit(0)
        os.waitpid(child, 0)
        assert os.read(reading, 100) == b"6"
        assert run(tool, "x", start=1)[0].text == "5"

    def test_that_cannot_be_rebuilt_is_unavailable_and_never_the_policys_fault(self, tool, sandbox):
        run(tool, "x = 5")
        sandbox.lose()
        sandbox._cell_before, broken = sandbox._cell, Outcome(ToolStatus.EXCEPTION, error_type="OSError")
        sandbox._plan = type(sandbox._plan)(lambda job: broken, lambda answer: answer)
        (result,) = run(tool, "x", start=1)
        assert (result.status, result.error_type, result.session) == (ToolStatus.UNAVAILABLE, "SessionLost", None)
        assert not sandbox.sessions

    def test_that_its_own_cells_end_every_time_is_the_policys_error(self):
        replaced = Outcome(ToolStatus.OK, session="replaced", session_note="Its process exited between two cells.")
        sandbox = StubSandbox([ToolStatus.OK, replaced])
        tool = NotebookTool(sandbox)
        _, result = run(tool, "start_a_thread_that_exits()", "1")
        assert (result.status, result.error_type, result.session) == (ToolStatus.EXCEPTION, "SessionEnded", "ended")
        assert result.text.startswith("SessionEnded: earlier cells end the notebook's process")
        assert not sandbox.sessions

    def test_a_failure_of_the_sandbox_is_tried_once_more(self):
        tool = NotebookTool(StubSandbox([ToolStatus.OK, ToolStatus.UNAVAILABLE, ToolStatus.OK, "again"]))
        first, second = run(tool, "1", "2")
        assert (first.status, second.status, second.text) == (ToolStatus.OK, ToolStatus.OK, "again")
        tool = NotebookTool(StubSandbox(ToolStatus.UNAVAILABLE))
        assert run(tool, "1")[0].status is ToolStatus.UNAVAILABLE


class TestInTheLocalSandbox:
    @pytest.fixture
    def local(self):
        try:
            tool = NotebookTool(limits=Limits(wall_s=0.5))
            tool._open()
        except SandboxUnavailableError as error:
            pytest.skip(f"no local sandbox on this machine: {error}")
        yield tool
        tool.close()

    def test_cells_share_a_process_and_the_policy_is_told_what_became_of_it(self, local):
        codes = ("x = 20", "x + 1", "while True: pass", "x", "x = = 1", "1 / 0", "import os; os._exit(3)", "x")
        results = run(local, *codes)
        assert [(str(result.status), result.session) for result in results] == [
            ("empty", "new"),
            ("ok", "kept"),
            ("timeout", "interrupted"),
            ("ok", "kept"),
            ("syntax_error", "kept"),
            ("exception", "kept"),
            ("exception", "ended"),
            ("exception", "new"),
        ]
        assert results[3].text == "20"
        assert "exited with code 3" in results[6].text

    def test_a_session_that_somebody_ended_is_rebuilt_with_its_random_numbers(self, local):
        first, again = run(local, "import random\nx = random.random()", "x")
        local._sandbox.end_session(local._name)
        (rebuilt,) = run(local, "x", start=2)
        assert (rebuilt.status, rebuilt.session, rebuilt.text) == (ToolStatus.OK, "kept", again.text)
        assert first.session == "new"

    def test_a_thread_that_ends_the_process_between_cells_never_makes_the_tool_unavailable(self, local):
        code = "import os, threading; threading.Timer({}, lambda: os._exit(0)).start()"
        run(local, code.format(0.02))
        time.sleep(0.5)
        (late,) = run(local, "import time; time.sleep(0.3)", start=1)
        assert late.status is not ToolStatus.UNAVAILABLE
        assert late.session == "ended"

    @pytest.mark.parametrize("ending", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
    def test_cells_whose_status_is_random_cannot_make_their_own_end_ours(self, local, ending):
        # Running such cells again gives another status, which must not be taken for a failure of the sandbox.
        code = f"""
import os, threading
threading.Timer(0.05, lambda: {ending}).start()
if int.from_bytes(os.urandom(2), "big") % 97:
    print(os.urandom(4).hex())
else:
    1 / 0
"""
        found, rounds = set(), 0
        while rounds < 3:
            (first,) = run(local, code)
            if first.session == "ended":  # so slow that it ended within its own cell
                local.end_episode()
                continue
            rounds += 1
            time.sleep(0.4)
            (late,) = run(local, "1", start=1)
            found.add((late.status, late.error_type, late.session))
            local.end_episode()
        assert found == {(ToolStatus.EXCEPTION, "SessionEnded", "ended")}

    def test_a_copy_goes_on_where_the_original_was(self, local):
        run(local, "x = [1]")
        copy = pickle.loads(pickle.dumps(local))
        assert run(copy, "x.append(2)", "x", start=1)[1].text == "[1, 2]"
        assert run(local, "x", start=1)[0].text == "[1]"
        copy.close()

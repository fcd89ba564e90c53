"""A program in a fork of a prepared process runs as in an interpreter of its own, which has imported more."""

import os
import resource
import signal
import subprocess

import prepared
import pytest

TELLS = """
import json, os, sys
imported = "colorsys" in sys.modules
import beside
found = [imported, beside.VALUE, __name__, sys.argv[1:], os.environ["MINE"], "HOME" in os.environ, os.getsid(0)]
print(json.dumps(found))
print("wrong", file=sys.stderr)
sys.exit(3)
"""


@pytest.fixture(scope="module")
def variables():
    with prepared.preparing(["colorsys"]) as found:
        yield found


@pytest.fixture
def forks(variables, monkeypatch):
    monkeypatch.setenv(prepared.SOCKET, variables[prepared.SOCKET])


def start(words, env=None, **more):
    return prepared.popen(words, env=env or {"MINE": "mine"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


@pytest.mark.parametrize("kind", ["script", "code"])
def test_it_has_its_own_words_variables_modules_and_files(forks, kind, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "beside.py").write_text("VALUE = 5\n")
    (tmp_path / "script.py").write_text(TELLS)
    words = [str(tmp_path / "script.py")] if kind == "script" else ["-c", TELLS]
    env = {"MINE": "mine", "PYTHONPATH": str(tmp_path / "elsewhere")}
    process = start([*words, "one", "two"], env, start_new_session=True)
    out, err = process.communicate(timeout=60)
    assert out == f'[true, 5, "__main__", ["one", "two"], "mine", false, {process.pid}]\n'
    assert (process.returncode, err) == (3, "wrong\n")


def test_an_error_that_it_does_not_catch_ends_it_with_a_traceback(forks):
    process = start(["-c", "import beside_nothing"])
    assert "No module named 'beside_nothing'" in process.communicate(timeout=60)[1]
    assert process.returncode == 1


def test_it_is_killed_and_its_end_is_told(forks):
    process = start(["-c", "import time; time.sleep(600)"])
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.kill()
    assert process.wait(60) == process.poll() == -signal.SIGKILL
    process.kill()  # its number may be another's now
    assert process.communicate() == ("", "")


def test_it_runs_in_the_folder_that_is_given(forks, tmp_path):
    done = prepared.run(["-c", "import os; print(os.getcwd())"], env={}, cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path}\n", "")


def test_a_program_that_takes_too_long_is_killed(forks, tmp_path):
    code = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    with pytest.raises(subprocess.TimeoutExpired):
        prepared.run(["-c", code], env={}, timeout=3)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_what_one_program_changes_no_other_sees(forks):
    start(["-c", "import colorsys; colorsys.ONE_THIRD = 5"]).communicate(timeout=60)
    process = start(["-c", "import colorsys; print(colorsys.ONE_THIRD < 1)"])
    assert process.communicate(timeout=60)[0] == "True\n"


def test_its_cpu_time_is_counted(monkeypatch):
    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = spent()
    with prepared.preparing([]) as found:
        monkeypatch.setenv(prepared.SOCKET, found[prepared.SOCKET])
        process = start(["-c", "import time\nwhile time.process_time() < 1: pass\nprint('done')"])
        assert process.communicate(timeout=60)[0] == "done\n"
    assert spent() - before >= 1


def test_nothing_is_imported_until_it_is_asked(monkeypatch, capfd):
    with prepared.preparing(["no_such_module"]):
        pass
    assert capfd.readouterr().err == ""
    with prepared.preparing(["no_such_module"]) as found:
        monkeypatch.setenv(prepared.SOCKET, found[prepared.SOCKET])
        with pytest.warns(UserWarning, match="no prepared process answers"):
            assert start(["-c", "print(5)"]).communicate(timeout=60)[0] == "5\n"
    assert "No module named 'no_such_module'" in capfd.readouterr().err


def test_if_the_prepared_process_has_ended_an_interpreter_starts(monkeypatch):
    with prepared.preparing([]) as found:
        monkeypatch.setenv(prepared.SOCKET, found[prepared.SOCKET])
    with pytest.warns(UserWarning, match="no prepared process answers"):
        process = start(["-c", "print(5)"])
    assert process.communicate(timeout=60)[0] == "5\n"


def test_without_a_prepared_process_an_interpreter_starts(monkeypatch):
    monkeypatch.delenv(prepared.SOCKET, raising=False)
    process = start(["-c", "import sys; print('colorsys' in sys.modules)"])
    assert isinstance(process, subprocess.Popen)
    assert process.communicate(timeout=60)[0] == "False\n"

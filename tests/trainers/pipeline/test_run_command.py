"""``rstar2 run``: the plan, the list, and what a run says."""

import subprocess
import sys

import pytest
from cli_runner import run
from letter_stages import CHAIN, diary, letters, written

from rstar2_env.trainers.pipeline.places import presets


def test_the_plan_shows_what_each_stage_takes_leaves_and_when_it_ends(tmp_path):
    file = written(tmp_path, CHAIN).file
    result = run("run", file, "-o", tmp_path / "run", "--dry-run", columns=160)
    assert result.exit_code == 0
    rows = {line.split("│")[1].strip(): line for line in result.stdout.splitlines() if line.startswith("│")}
    assert {"a", "b", "c-1", "d-3", "e"} <= set(rows)
    plan = result.stdout.partition("estimated costs")[0]
    assert "source: c-1.letters" in plan
    assert "round 1 of 3, or rounds end at d.figure >= 2" in plan
    assert "9 s are left on 1 x CPU" in result.stdout
    assert not (tmp_path / "run").exists()


def test_the_plan_says_what_is_up_to_date_and_why_the_rest_is_not(tmp_path):
    file = written(tmp_path, CHAIN).file
    assert run("run", file, "-o", tmp_path / "run").exit_code == 0
    result = run("run", file, "-o", tmp_path / "run", "--dry-run", "--set", "b.letter=B", columns=200)
    before = result.stdout.partition("estimated costs")[0]
    cells = [line.split("│") for line in before.splitlines() if line.startswith("│")]
    assert {one[1].strip(): one[2].strip() for one in cells}["a"] == "done"
    assert 'again: options.letter was "b" and is "B"' in before
    assert "again: if the output of b changes" in before


def _plan(file, folder, *more):
    result = run("run", file, "-o", folder, "--dry-run", *more, columns=200)
    assert result.exit_code == 0, result.output
    cells = [line.split("│") for line in result.stdout.partition("estimated costs")[0].splitlines()]
    return {one[1].strip(): one[2].strip() for one in cells if len(one) > 2 and one[1].strip()}


def test_the_plan_goes_from_the_stage_to_the_stage_that_are_asked_for(tmp_path):
    file = written(tmp_path, CHAIN).file
    assert set(_plan(file, tmp_path / "run", "--until", "b").values()) == {"to do", "later"}
    assert run("run", file, "-o", tmp_path / "run").exit_code == 0
    states = _plan(file, tmp_path / "run", "--from", "b", "--until", "c")
    assert (states["a"], states["b"], states["c-1"], states["e"]) == ("taken", "again", "again", "later")


def test_a_plan_refuses_the_stages_that_a_run_would_refuse(tmp_path):
    file = written(tmp_path, CHAIN).file
    for option in ("--from", "--until"):
        result = run("run", file, "-o", tmp_path / "run", "--dry-run", option, "nope")
        assert result.exit_code == 2
        assert f"'nope'; its stages are a, b, c, d, e ({option})" in " ".join(result.stderr.split())
    for more in ([], ["--dry-run"]):
        result = run("run", file, "-o", tmp_path / "run", "--from", "b", *more)
        assert "the stage 'a' did not finish" in result.stderr
        assert "(--from)" in result.stderr
    assert "No stage is selected" in run("run", file, "--from", "b", "--until", "a").stderr


def test_a_file_that_is_not_there_is_not_called_a_name(tmp_path):
    result = run("run", tmp_path / "tiny.yaml", "--dry-run")
    assert result.exit_code == 2
    assert f"{tmp_path / 'tiny.yaml'} does not exist" in result.stderr


def test_a_run_says_what_it_does_and_settings_reach_the_stages(tmp_path):
    file = written(tmp_path, CHAIN).file
    result = run("run", file, "-o", tmp_path / "run", "--set", "a.letter=z", "--seed", "5", "--until", "b")
    assert result.exit_code == 0, result.output
    assert letters(tmp_path / "run") == {"a": "z5", "b": "z5b5"}
    assert "[1/9] a: started." in result.stderr
    assert "[2/9] b: done. figure 0, length 3." in result.stderr


def test_a_mistake_is_one_line(tmp_path):
    file = written(tmp_path, CHAIN).file
    result = run("run", file, "--set", "f.letter=z")
    assert result.exit_code == 2
    assert "does not contain the stage 'f'" in result.stderr


def test_the_list_names_every_preset_with_its_line():
    listed = run("run", "--list").stdout
    assert all(name in listed for name in presets())
    assert "tiny_cpu" in presets()


@pytest.mark.slow
def test_reading_and_planning_load_no_torch(tmp_path):
    program = (
        "import sys; from rstar2_env.cli import main\n"
        f"try: main(['run', 'tiny_cpu', '--dry-run', '-o', {str(tmp_path / 'run')!r}])\n"
        "except SystemExit as ended: assert not ended.code, ended.code\n"
        "print([name for name in ('torch', 'transformers', 'trl', 'datasets') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=800)
    assert ended.stdout.splitlines()[-1] == "[]", ended.stdout + ended.stderr


def test_an_interrupted_run_says_how_to_go_on(tmp_path, monkeypatch):
    from letter_stages import Letters

    file = written(tmp_path, CHAIN).file

    def interrupted(self, work):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Letters, "run", interrupted)
        result = run("run", file, "-o", tmp_path / "run")
    assert result.exit_code == 130
    assert "enter the same command again" in result.stderr
    assert run("run", file, "-o", tmp_path / "run").exit_code == 0
    assert diary(tmp_path / "run")[0] == "a resumed"

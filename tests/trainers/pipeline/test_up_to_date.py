"""What is up to date is not done again; a changed option redoes its stage and what depends on it."""

import gc
import json
import os
import shutil
import weakref
from datetime import datetime
from types import SimpleNamespace
from typing import ClassVar

import pytest
from letter_stages import CHAIN, ORDER, Letters, begun, diary, letters, live, run, written

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.json_lines import lock_file
from rstar2_env.core.run_folder import RunWriter, read_run
from rstar2_env.trainers.pipeline.base import Output
from rstar2_env.trainers.pipeline.plan import PipelinePlan
from rstar2_env.trainers.pipeline.run import PipelineRun, look_at

TWO = """
stages:
  a: {kind: letters, letter: a}
  b: {kind: letters, letter: b}
  c: {kind: letters, letter: c, source: a.letters}
  d: {kind: letters, letter: d, source: c.letters}
"""


def states(pipeline, folder):
    return {one.made.step.id: one.state for one in look_at(PipelineRun(PipelinePlan(pipeline, folder)))}


def test_a_second_run_does_nothing(tmp_path):
    pipeline = written(tmp_path, CHAIN)
    run(pipeline, tmp_path / "run")
    before = diary(tmp_path / "run")
    _, said = run(pipeline, tmp_path / "run")
    assert diary(tmp_path / "run") == before
    assert begun(before) == list(ORDER)
    assert all("up to date" in line for line in said if line.startswith("["))


def test_memory_of_a_stage_is_released_before_the_next(tmp_path, monkeypatch):
    left, alive, plain = [], [], Letters.run

    def leaving(self, work):
        alive.extend(one() is not None for one in left)
        cycle = type("Cycle", (), {})()
        cycle.itself = cycle
        left.append(weakref.ref(cycle))
        return plain(self, work)

    monkeypatch.setattr(Letters, "run", leaving)
    gc.disable()
    try:
        run(written(tmp_path, TWO), tmp_path / "run")
    finally:
        gc.enable()
    assert alive == [False] * (0 + 1 + 2 + 3)


def test_rounds_end_at_their_criterion_and_what_follows_takes_the_last_round(tmp_path):
    run(written(tmp_path, CHAIN), tmp_path / "run")
    # The seed of a round is the pipeline's plus the rounds before it.
    assert letters(tmp_path / "run")["d-2"] == "a0b0c0d0c1d1"
    assert letters(tmp_path / "run")["e"] == "a0b0c0d0c1d1a0e0"
    events = [event for event in read_run(tmp_path / "run").events if event["event"] == "rounds_ended"]
    assert [(event["rounds"], event["after"]) for event in events] == [("again", 2)]


def test_a_group_ends_for_itself_alone_and_at_the_end_of_a_round(tmp_path):
    text = """
stages:
  one: {rounds: 2, until: a.figure >= 1, stages: {a: {kind: letters, figure: 1}, b: {kind: letters}}}
  other: {rounds: 2, stages: {c: {kind: letters}}}
"""
    run(written(tmp_path, text), tmp_path / "run")
    assert begun(diary(tmp_path / "run")) == ["a-1", "b-1", "c-1", "c-2"]
    events = [event for event in read_run(tmp_path / "run").events if event["event"] == "rounds_ended"]
    assert [(event["rounds"], event["after"]) for event in events] == [("one", 1)]


def test_all_rounds_run_where_the_criterion_is_never_met(tmp_path):
    run(written(tmp_path, CHAIN.replace(">= 2", ">= 4")), tmp_path / "run")
    assert "d-3" in letters(tmp_path / "run")


def test_a_changed_option_redoes_its_stage_and_what_depends_on_it(tmp_path):
    run(written(tmp_path, TWO), tmp_path / "run")
    changed = written(tmp_path, TWO, a={"letter": "A"})
    assert states(changed, tmp_path / "run") == {"a": "again", "b": "done", "c": "again", "d": "again"}
    _, said = run(changed, tmp_path / "run")
    assert begun(diary(tmp_path / "run"))[4:] == ["a", "c", "d"]
    assert letters(tmp_path / "run") == {"a": "A0", "b": "b0", "c": "A0c0", "d": "A0c0d0"}
    told = next(line for line in said if "runs again" in line)
    assert 'options.letter was "a" and is "A"' in told
    # What there was is kept.
    assert (tmp_path / "run" / "replaced" / "a.1" / "letters.txt").read_text() == "a0"


def test_what_is_set_aside_twice_is_kept_twice(tmp_path):
    for letter in "abc":
        run(written(tmp_path, TWO, a={"letter": letter}), tmp_path / "run")
    kept = sorted((tmp_path / "run" / "replaced").glob("a.*"))
    assert [(one.name, (one / "letters.txt").read_text()) for one in kept] == [("a.1", "a0"), ("a.2", "b0")]


def test_a_plan_judges_no_round_by_what_is_to_be_done_again(tmp_path):
    run(written(tmp_path, CHAIN), tmp_path / "run")
    found = states(written(tmp_path, CHAIN, d={"letter": "D"}), tmp_path / "run")
    assert (found["c-1"], found["d-1"], found["c-2"], found["c-3"]) == ("done", "again", "again", "to do")


def test_the_disk_has_what_a_stage_left_before_its_end_is_told(tmp_path, monkeypatch):
    synced, sync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(os.fstat(number).st_ino) or sync(number))
    run(written(tmp_path, "stages: {a: {kind: letters}}"), tmp_path / "run")
    names = {(tmp_path / "run" / name).stat().st_ino: name for name in ("events.jsonl", "stages/a/letters.txt")}
    found = [names[one] for one in synced if one in names]
    assert found == ["events.jsonl", "stages/a/letters.txt", "events.jsonl", "events.jsonl"]


def test_what_has_not_changed_is_not_read_again(tmp_path, monkeypatch):
    pipeline = written(tmp_path, TWO)
    run(pipeline, tmp_path / "run")
    monkeypatch.setattr("rstar2_env.trainers.pipeline.digests._content", lambda *args, **more: pytest.fail("read"))
    assert set(states(pipeline, tmp_path / "run").values()) == {"done"}


def test_a_stage_whose_inputs_come_out_the_same_is_not_done_again(tmp_path):
    run(written(tmp_path, TWO), tmp_path / "run")
    run(written(tmp_path, TWO, a={"figure": 3}), tmp_path / "run")
    assert begun(diary(tmp_path / "run"))[4:] == ["a"]


def test_another_seed_redoes_all_but_stages_with_one_of_their_own(tmp_path):
    text = TWO.replace("letter: b}", "letter: b, seed: 0}")
    run(written(tmp_path, text), tmp_path / "run")
    run(written(tmp_path, text, seed=4), tmp_path / "run")
    assert begun(diary(tmp_path / "run"))[4:] == ["a", "c", "d"]
    assert letters(tmp_path / "run")["b"] == "b0"


@pytest.mark.parametrize("harm", ["removed", "changed"])
def test_an_output_that_was_harmed_is_made_again(tmp_path, harm):
    pipeline = written(tmp_path, TWO)
    run(pipeline, tmp_path / "run")
    output = tmp_path / "run" / "stages" / "a" / "letters.txt"
    output.unlink() if harm == "removed" else output.write_text("z0")
    if harm == "changed":
        os.utime(output, (1, 1))  # of the same size, it shows by its time, which has ticks
    _, said = run(pipeline, tmp_path / "run")
    assert any(f"its output letters was {harm}" in line for line in said)
    # It comes out as it was, so that nothing else is done again.
    assert begun(diary(tmp_path / "run"))[4:] == ["a"]
    assert letters(tmp_path / "run")["d"] == "a0c0d0"


def test_a_file_from_outside_counts_by_its_content(tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("o")
    pipeline = written(tmp_path, "stages:\n  a: {kind: letters, source: outside.txt}\n")
    run(pipeline, tmp_path / "run")
    os.utime(outside, (1, 1))
    assert states(pipeline, tmp_path / "run") == {"a": "done"}
    outside.write_text("p")
    assert states(pipeline, tmp_path / "run") == {"a": "again"}


def test_a_file_from_outside_counts_by_its_content_with_an_option_behind_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = PipelinePlan(
        written(tmp_path, 'stages:\n  a: {kind: letters, source: "outside.txt:level=1"}\n'), tmp_path / "run"
    )
    found = []
    for content in "opo":
        (tmp_path / "outside.txt").write_text(content)
        os.utime(tmp_path / "outside.txt", (len(found), len(found)))
        found.append(PipelineRun(plan).look(plan.steps[0]).fingerprint)
    assert found[0] == found[2] != found[1]


@pytest.mark.parametrize(
    "problems", ["own.jsonl:holdout=0.5", "{path: own.jsonl, holdout: 0.5}", "{spec: 'own.jsonl:holdout=0.5'}"]
)
def test_problems_with_options_are_found_beside_the_pipeline_and_count_by_their_content(tmp_path, problems):
    written_problems = [{"question": f"Say {n}.", "answer": "7"} for n in range(20)]
    own = tmp_path / "own.jsonl"
    own.write_text("".join(json.dumps(one) + "\n" for one in written_problems))
    pipeline = written(tmp_path, f"stages:\n  a: {{kind: data, problems: {problems}}}\n")
    done, _ = run(pipeline, tmp_path / "run")
    assert done.states["a"].figures["train"] > 1
    os.utime(own, (1, 1))
    assert states(pipeline, tmp_path / "run") == {"a": "done"}
    # Where the files lie does not count.
    moved = written(tmp_path / "moved", (tmp_path / "letters.yaml").read_text())
    own.rename(tmp_path / "moved" / "own.jsonl")
    assert states(moved, tmp_path / "run") == {"a": "done"}
    (tmp_path / "moved" / "own.jsonl").write_text("")
    assert states(moved, tmp_path / "run") == {"a": "again"}


def test_a_folder_that_was_moved_is_still_up_to_date(tmp_path):
    pipeline = written(tmp_path, CHAIN)
    run(pipeline, tmp_path / "run")
    (tmp_path / "run").rename(tmp_path / "moved")
    assert set(states(pipeline, tmp_path / "moved").values()) == {"done", "skipped"}


def test_until_leaves_the_rest_and_the_next_run_goes_on(tmp_path):
    pipeline = written(tmp_path, CHAIN)
    run(pipeline, tmp_path / "run", until="b")
    assert begun(diary(tmp_path / "run")) == ["a", "b"]
    assert not read_run(tmp_path / "run").finished
    run(pipeline, tmp_path / "run")
    assert begun(diary(tmp_path / "run")) == list(ORDER)
    assert read_run(tmp_path / "run").finished


def test_of_a_stage_in_rounds_until_means_the_last_and_from_the_first(tmp_path):
    pipeline = written(tmp_path, CHAIN.replace(">= 2", ">= 4"))
    run(pipeline, tmp_path / "run", until="c")
    assert begun(diary(tmp_path / "run"))[-1] == "c-3"
    run(pipeline, tmp_path / "run", begin="c", until="c")
    assert begun(diary(tmp_path / "run"))[7:] == ["c-1", "d-1", "c-2", "d-2", "c-3"]


def test_from_takes_what_is_before_as_it_is_and_does_the_rest_again(tmp_path):
    run(written(tmp_path, TWO), tmp_path / "run")
    changed = written(tmp_path, TWO, a={"letter": "A"})
    _, said = run(changed, tmp_path / "run", begin="c")
    assert begun(diary(tmp_path / "run"))[4:] == ["c", "d"]
    assert letters(tmp_path / "run")["d"] == "a0c0d0"
    assert any(line.startswith("a: the existing results are reused") for line in said)
    # It stays taken.
    run(changed, tmp_path / "run")
    assert begun(diary(tmp_path / "run"))[4:] == ["c", "d"]


def test_from_needs_what_is_before(tmp_path):
    with pytest.raises(ConfigurationError, match="'a' did not finish"):
        run(written(tmp_path, TWO), tmp_path / "run", begin="c")
    assert live(written(tmp_path, TWO), tmp_path / "run", ("a", "end")) == 9
    with pytest.raises(ConfigurationError, match="'a' did not finish"):
        run(written(tmp_path, TWO), tmp_path / "run", begin="c")


def test_from_takes_what_was_edited_for_what_is_there(tmp_path):
    pipeline, folder = written(tmp_path, TWO), tmp_path / "run"
    run(pipeline, folder)
    (folder / "stages" / "a" / "letters.txt").write_text("z0")
    run(pipeline, folder, begin="c")
    assert letters(folder)["d"] == "z0c0d0"
    # It stays taken, and what was made of it is up to date.
    assert set(states(pipeline, folder).values()) == {"done"}
    run(pipeline, folder)
    assert letters(folder)["d"] == "z0c0d0"
    assert not list(folder.glob("replaced/a.*"))


def test_from_does_not_take_a_stage_whose_output_is_gone(tmp_path):
    pipeline, folder = written(tmp_path, TWO), tmp_path / "run"
    run(pipeline, folder)
    (folder / "stages" / "a" / "letters.txt").unlink()
    told = r"'letters' of the stage 'a' does not exist \(.*letters.txt\)"
    with pytest.raises(ConfigurationError, match=told):
        run(pipeline, folder, begin="c")
    with pytest.raises(ConfigurationError, match=told):
        list(look_at(PipelineRun(PipelinePlan(pipeline, folder)), begin="c"))


def test_a_stage_whose_folder_was_removed_begins_anew_and_goes_on(tmp_path):
    run(written(tmp_path, TWO), tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "stages" / "a")
    assert live(written(tmp_path, TWO), tmp_path / "run", ("a", "middle")) == 9
    assert states(written(tmp_path, TWO), tmp_path / "run")["a"] == "resume"


def test_from_begins_a_stage_anew_that_could_go_on(tmp_path):
    assert live(written(tmp_path, TWO), tmp_path / "run", ("c", "middle")) == 9
    run(written(tmp_path, TWO), tmp_path / "run", begin="c")
    assert diary(tmp_path / "run") == ["a started", "b started", "c started", "c started", "d started"]
    assert (tmp_path / "run" / "replaced" / "c.1" / "half.txt").exists()


def test_a_stage_that_goes_on_is_told_what_that_depends_on(tmp_path):
    assert live(written(tmp_path, TWO), tmp_path / "run", ("c", "middle")) == 9
    looked = look_at(PipelineRun(PipelinePlan(written(tmp_path, TWO, a={"letter": "A"}), tmp_path / "run")))
    assert {one.made.step.id: (one.state, one.why) for one in looked}["c"] == (
        "resume",
        "unless the output of a changes",
    )


def test_a_stage_that_began_from_something_else_does_not_go_on_with_its_folder(tmp_path):
    assert live(written(tmp_path, TWO), tmp_path / "run", ("a", "middle")) == 9
    changed = written(tmp_path, TWO, a={"letter": "A"})
    assert states(changed, tmp_path / "run")["a"] == "again"
    run(changed, tmp_path / "run")
    assert diary(tmp_path / "run")[:2] == ["a started", "a started"]


def test_a_second_runner_is_refused(tmp_path):
    pipeline = written(tmp_path, TWO)
    (tmp_path / "run").mkdir()
    lock = lock_file(tmp_path / "run" / "pipeline.json")
    with pytest.raises(ConfigurationError, match="Another process is running a pipeline in"):
        run(pipeline, tmp_path / "run")
    lock.close()
    run(pipeline, tmp_path / "run")


def test_processes_of_a_stage_are_given_the_lock(tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(Letters, "run", lambda self, work: given.extend(map(os.fstat, work.inherited)) or {})
    with pytest.raises(ConfigurationError, match="without its output"):
        run(written(tmp_path, TWO), tmp_path / "run")
    assert [one.st_ino for one in given] == [(tmp_path / "run" / ".pipeline.json.lock").stat().st_ino]


def raising(error):
    """What a stage runs that raises an error."""

    def raises(self, work):
        raise error("so")

    return raises


@pytest.mark.parametrize(
    ("raised", "told"), [(SystemExit, "interrupted"), (KeyboardInterrupt, "interrupted"), (ValueError, "failed")]
)
def test_how_a_run_ended_is_told(tmp_path, monkeypatch, raised, told):
    monkeypatch.setattr(Letters, "run", raising(raised))
    with pytest.raises(raised):
        run(written(tmp_path, TWO), tmp_path / "run")
    last = read_run(tmp_path / "run").events[-1]
    assert (last["event"], last.get("error")) == (told, "ValueError: so" if told == "failed" else None)


def test_the_seconds_of_a_stage_are_those_of_all_its_runs(tmp_path, monkeypatch):
    pipeline, folder = written(tmp_path, TWO), tmp_path / "run"
    times = iter(range(0, 1000, 10))
    monkeypatch.setattr("rstar2_env.trainers.pipeline.run.time", SimpleNamespace(monotonic=lambda: next(times)))
    for error in (KeyboardInterrupt, ValueError):
        with monkeypatch.context() as patched:
            patched.setattr(Letters, "run", raising(error))
            with pytest.raises(error):
                run(pipeline, folder)
        last = read_run(folder).events[-1]
        assert (last["stage"], last["seconds"]) == ("a", 10)
    assert live(pipeline, folder, ("a", "middle")) == 9
    half, began = folder / "stages" / "a" / "half.txt", read_run(folder).events[-1]["time"]
    os.utime(half, (0, datetime.fromisoformat(began).timestamp() + 500))  # the last that the killed run wrote
    done, _ = run(pipeline, folder)
    assert done.states["a"].seconds == pytest.approx(10 + 10 + 500 + 10)
    assert done.states["b"].seconds == 10


def test_the_folder_of_another_run_is_refused(tmp_path):
    RunWriter(tmp_path / "run", kind="training").begin({})
    with pytest.raises(ConfigurationError, match="holds a training run"):
        run(written(tmp_path, TWO), tmp_path / "run")


def test_a_stage_that_ends_without_its_output_fails(tmp_path):
    pipeline = written(tmp_path, TWO, b={"forgets": True})
    with pytest.raises(ConfigurationError, match="'b' finished without its output 'letters'"):
        run(pipeline, tmp_path / "run")
    assert read_run(tmp_path / "run").events[-1]["event"] == "failed"
    assert "c" not in letters(tmp_path / "run")


def test_looking_at_a_plan_writes_nothing(tmp_path):
    states(written(tmp_path, CHAIN), tmp_path / "run")
    assert not (tmp_path / "run").exists()


class Spare(Letters):
    """Letters, and a spare copy of them, which counts where another stage takes it."""

    outputs: ClassVar = {**Letters.outputs, "spare": Output("letters", "spare.txt", if_taken=True)}

    def run(self, work):
        """Write both."""
        figures = super().run(work)
        shutil.copy(work.folder / "letters.txt", work.folder / "spare.txt")
        return figures


SPARE = f"""
stages:
  a: {{kind: "{__file__}:Spare", letter: a}}
  b: {{kind: letters, letter: b, source: a.letters}}
"""


def test_an_output_that_no_stage_takes_may_go_and_one_that_is_taken_may_not(tmp_path):
    run(written(tmp_path, SPARE), tmp_path / "run")
    spare = tmp_path / "run" / "stages" / "a" / "spare.txt"
    spare.unlink()
    assert states(written(tmp_path, SPARE), tmp_path / "run") == {"a": "done", "b": "done"}
    taken = written(tmp_path, SPARE, b={"source": "a.spare"})
    assert states(taken, tmp_path / "run") == {"a": "again", "b": "again"}
    _, said = run(taken, tmp_path / "run")
    assert any("runs again, because its output spare was removed" in line for line in said)
    assert states(taken, tmp_path / "run") == {"a": "done", "b": "done"}
    spare.write_text("another")
    assert states(taken, tmp_path / "run") == {"a": "again", "b": "again"}


def test_an_output_that_is_taken_later_is_taken_as_it_is(tmp_path):
    run(written(tmp_path, SPARE), tmp_path / "run")
    (tmp_path / "run" / "stages" / "a" / "spare.txt").write_text("x")
    taken = written(tmp_path, SPARE, b={"source": "a.spare"})
    assert states(taken, tmp_path / "run") == {"a": "done", "b": "again"}
    run(taken, tmp_path / "run")
    assert letters(tmp_path / "run")["b"] == "xb0"
    assert states(taken, tmp_path / "run") == {"a": "done", "b": "done"}
    (tmp_path / "run" / "stages" / "a" / "spare.txt").write_text("y")
    assert states(taken, tmp_path / "run") == {"a": "done", "b": "again"}

"""What is written into a run's folder is read back, at any moment, also after a kill at any byte."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from run_sample import CONFIG, episode, groups_of, write_run, write_step

from rstar2_env.core.errors import ConfigurationError, RecordFormatError
from rstar2_env.core.run_folder import Decision, RunWriter, read_run


def test_a_run_is_read_back_as_it_was_written(run_folder: Path) -> None:
    run = read_run(run_folder)
    assert (run.kind, run.config, run.finished) == ("training", CONFIG, True)
    assert run.recipe == {"name": "grpo_roc", "selector": ["roc", {"mode": "rank"}]}
    assert run.steps == [1, 2, 3, 4]
    assert [line["loss"] for line in run.metrics()] == [1.0, 0.5, 1 / 3, 0.25]
    assert math.isnan(run.metrics()[0]["kl"])
    happened = ["started", "evaluation", "checkpoint", "evaluation", "finished"]
    assert [event["event"] for event in run.events] == happened
    assert run.events[0]["versions"]["gymnasium"]
    assert sorted(event["time"] for event in run.events) == [event["time"] for event in run.events]
    assert [(one.step, one.figures["pass_rate"]) for one in run.evaluations] == [(0, 0.25), (4, 0.75)]
    assert math.isnan(run.evaluations[0].figures["tool_error_share"])
    (checkpoint,) = run.checkpoints
    assert (checkpoint.step, checkpoint.path, checkpoint.more) == (
        2,
        run_folder / "checkpoint-2",
        {"sampler": "checkpoint-2/sampler.json"},
    )


def test_every_episode_is_there_with_what_became_of_it(run_folder: Path) -> None:
    groups = read_run(run_folder).groups(3)
    assert [len(group) for group in groups] == [3, 3, 3]
    for number, group in enumerate(groups):
        for member, entry in enumerate(group):
            written = episode(number, member, 3)
            assert entry.episode.record() == written.record()
            assert (entry.step, entry.member, entry.kept) == (3, member, member > 0)
            assert entry.decision is not None
            assert entry.decision.reason == ("" if member else "quota")
            assert entry.decision.round == (number == 2)
            assert entry.decision.advantage == (0.5 if member else None)
            assert entry.episode.steps == written.steps
            assert entry.episode.rewards == {"return": float(member % 2)}


def test_held_out_episodes_are_not_those_of_training(run_folder: Path) -> None:
    run = read_run(run_folder)
    assert run.evaluated_steps == [0, 4]
    assert [entry.episode.messages[1].content for entry in run.held_out(4)] == [
        episode(number, 0, 98).messages[1].content for number in range(3)
    ]
    assert [entry.decision for entry in run.held_out(0)] == [None] * 3
    assert run.episodes(0) == []


def test_tokens_are_there_where_they_were_asked_for(run_folder: Path, tmp_path: Path) -> None:
    (entry,) = read_run(run_folder).tokens(2)
    assert (entry.completion_ids, entry.mask, entry.ratios) == ([3, 4, 5, 6], [1, 1, 0, 1], [1.0, 1.1, 1.0, 0.9])
    without = RunWriter(tmp_path / "without")
    without.begin(CONFIG)
    write_step(without, 1)
    assert read_run(tmp_path / "without").tokens(1) == []
    assert not (tmp_path / "without" / "tokens").exists()


def test_several_processes_write_files_of_their_own_and_the_reader_joins_them(tmp_path: Path) -> None:
    writers = [RunWriter(tmp_path / "run", rank=rank) for rank in range(3)]
    for writer in writers:
        writer.begin(CONFIG)
    for rank in (2, 0, 1):
        writers[rank].train(1, groups_of(1, first=2 * rank))
        writers[rank].metrics(1, {"loss": float(rank)})
        writers[rank].event("finished", 1)
    run = read_run(tmp_path / "run")
    assert [group[0].episode.group for group in run.groups(1)] == [0, 1, 2, 3, 4, 5]
    assert run.metrics() == [{"step": 1, "loss": 0.0}], "the first process alone writes metrics"
    assert [event["event"] for event in run.events] == ["started", "finished"]


def test_a_run_can_be_followed_while_it_is_written(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    writer.begin(CONFIG)
    run = read_run(tmp_path / "run")
    assert (run.steps, run.metrics(), run.finished) == ([], [], False)
    writer.train(1, groups_of(1), [[Decision(True)] * 3] * 2)
    assert [len(group) for group in run.groups(1)] == [3, 3]
    assert run.steps == [1]
    writer.metrics(1, {"loss": 2.0})
    assert run.metrics() == [{"step": 1, "loss": 2.0}]


FILES = (
    "metrics.jsonl",
    "events.jsonl",
    "episodes/train-000003.jsonl.gz",
    "episodes/eval-000004.jsonl.gz",
    "tokens/train-000004.jsonl.gz",
)


def figures(folder: Path) -> dict[str, list[object]]:
    """Everything that the reader says of a run, as lists that a cut can only shorten at the end."""
    run = read_run(folder)
    return {
        "metrics.jsonl": [json.dumps(line) for line in run.metrics()],
        "events.jsonl": [event["event"] for event in run.events],
        "episodes/train-000003.jsonl.gz": [(entry.member, entry.episode.record()) for entry in run.episodes(3)],
        "episodes/eval-000004.jsonl.gz": [entry.episode.record() for entry in run.held_out(4)],
        "tokens/train-000004.jsonl.gz": [entry.record() for entry in run.tokens(4)],
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    write_run(folder)
    return folder


@pytest.mark.parametrize("file", FILES)
@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_cut_at_any_byte_reads_up_to_the_cut_and_the_others_as_before(
    file: str, data: st.DataObject, whole: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    before = figures(whole)
    folder = tmp_path_factory.mktemp("cut") / "run"
    shutil.copytree(whole, folder)
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[: data.draw(st.integers(0, len(content)), label="bytes left")])
    after = figures(folder)
    left = after.pop(file)
    assert left == before[file][: len(left)]
    assert after == {name: value for name, value in before.items() if name != file}
    # The run goes on after step 2, whatever was cut.
    writer = RunWriter(folder, tokens=True)
    writer.begin(CONFIG, resumed=2)
    for step in (3, 4):
        write_step(writer, step)
    again = read_run(folder)
    assert [line["step"] for line in again.metrics()] in ([1, 2, 3, 4], [2, 3, 4], [1, 3, 4], [3, 4])
    assert figures(folder)["episodes/train-000003.jsonl.gz"] == before["episodes/train-000003.jsonl.gz"]
    assert [event["event"] for event in again.events][-1] == "resumed"
    shutil.rmtree(folder.parent)


def damage(change: Callable[[dict[str, object]], None]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        identity = json.loads((folder / "run.json").read_text())
        change(identity)
        (folder / "run.json").write_text(json.dumps(identity))

    return apply


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (damage(lambda identity: identity.update(version=2)), "version 2 of the format.*up to 1. Update"),
        (damage(lambda identity: identity.update(format="x")), "does not describe a run"),
        (damage(lambda identity: identity.pop("kind")), "does not describe a run"),
        (lambda folder: (folder / "run.json").write_text("{"), "cannot be read"),
        (lambda folder: (folder / "run.json").unlink(), "it does not contain run.json"),
        (shutil.rmtree, "does not exist: give the folder of a run"),
    ],
)
def test_what_is_no_run_or_a_later_one_is_refused(
    break_it: Callable[[Path], object], says: str, run_folder: Path
) -> None:
    break_it(run_folder)
    with pytest.raises(ConfigurationError, match=says):
        read_run(run_folder)


def test_a_damaged_line_is_named_by_file_and_number(run_folder: Path) -> None:
    with (run_folder / "metrics.jsonl").open("a") as file:
        file.write("oops\n")
    with pytest.raises(RecordFormatError, match=r"Line 5 of .*metrics\.jsonl is not"):
        read_run(run_folder).metrics()


def test_a_key_that_nobody_knows_is_kept_beside_the_episode(run_folder: Path) -> None:
    path = run_folder / "episodes" / "eval-000001.jsonl"
    record = {**episode(0, 0, 1).record(), "gold": "42", "of_tomorrow": [1]}
    record["index"] = record.pop("group")
    path.write_text(json.dumps(record) + "\n")
    (entry,) = read_run(run_folder).held_out(1)
    assert entry.more == {"gold": "42", "of_tomorrow": [1]}


@pytest.mark.parametrize("name", ["metrics.jsonl", "events.jsonl", "config.json", "episodes/train-000001.jsonl.gz"])
def test_a_link_out_of_the_folder_is_not_read(name: str, run_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run_folder, tmp_path / "copy")
    (folder / name).rename(tmp_path / "outside")
    (folder / name).symlink_to(tmp_path / "outside")
    run = read_run(folder)
    with pytest.raises(ConfigurationError, match=f"{name} leads to .*outside, outside of the run's folder"):
        (run.metrics(), run.events, run.config, run.episodes(1))
    (folder / name).unlink()
    (tmp_path / "outside").rename(folder / "inside")
    (folder / name).symlink_to(folder / "inside")  # a link within the folder
    assert all((run.metrics(), run.events, run.config, run.episodes(1)))


def test_a_config_file_outside_of_the_folder_is_not_read(run_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run_folder, tmp_path / "copy")
    (folder / "config.json").rename(tmp_path / "config.json")
    (folder / "run.json").write_text(
        json.dumps({**json.loads((folder / "run.json").read_text()), "config": "../config.json"})
    )
    with pytest.raises(ConfigurationError, match=r"The key 'config' of the file .*run\.json .*not '\.\./config\.json'"):
        _ = read_run(folder).config


@pytest.mark.parametrize("name", [None, "", "..", "a/b.json", 7, ["config.json"]])
def test_a_run_that_does_not_name_its_options_says_which_key_is_wrong(
    name: object, run_folder: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(run_folder, tmp_path / "copy")
    (folder / "run.json").write_text(json.dumps({**json.loads((folder / "run.json").read_text()), "config": name}))
    with pytest.raises(ConfigurationError, match=r"The key 'config' of .*run\.json must be the name of a file"):
        _ = read_run(folder).config


def test_a_pipe_in_place_of_a_file_is_not_waited_for(run_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run_folder, tmp_path / "copy")
    (folder / "metrics.jsonl").unlink()
    os.mkfifo(folder / "metrics.jsonl")
    with pytest.raises(ConfigurationError, match=r"metrics\.jsonl is not a file"):
        read_run(folder).metrics()


HUGE = "9" * 400


def with_line(run_folder: Path, tmp_path: Path, name: str, line: str) -> tuple[Path, int]:
    """Copy a run with one more line in a file; return the copy and the number of the line."""
    folder = Path(shutil.copytree(run_folder, tmp_path / "copy"))
    before = (folder / name).read_text()
    (folder / name).write_text(f"{before}{line}\n")
    return folder, before.count("\n") + 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"event": "note", "step": 1e999}', "a number under the key 'step', not inf"),
        ('{"event": "started"}', "a number under the key 'step', not None"),
        ('{"event": "finished", "step": null}', "a number under the key 'step', not None"),
        (f'{{"event": "resumed", "step": {HUGE}}}', "a number under the key 'step', not 9"),
        ('{"step": 1}', "a text under the key 'event', not None"),
        ('{"event": [], "step": 1}', r"a text under the key 'event', not \[\]"),
        ('{"event": "checkpoint", "step": 1, "path": []}', "a text under the key 'path'"),
        ('{"event": "saved", "step": 1}', "a text under the key 'path', not None"),
        ('{"event": "note", "step": 1}', "a text under the key 'text', not None"),
        ('{"event": "evaluation", "step": 1}', "a mapping under the key 'figures'"),
        (
            '{"event": "evaluation", "step": 1, "figures": {"a": 1, "pass_rate": "x"}}',
            r"a number or null under the key 'figures\.pass_rate', not 'x'",
        ),
        (f'{{"event": "evaluation", "step": 1, "figures": {{"a": {HUGE}}}}}', r"a number .*'figures\.a', not 9"),
        ('{"event": "started", "step": 0, "processes": "x"}', "a number under the key 'processes', not 'x'"),
        ('{"event": "resumed", "step": 0, "versions": [1]}', r"a mapping under the key 'versions', not \[1\]"),
        ('{"event": "stage_began", "step": 0, "fingerprint": "f"}', "the name of a folder under the key 'stage'"),
        (
            '{"event": "stage_ended", "step": 0, "stage": "../../x", "fingerprint": "f", "outputs": {}}',
            r"the name of a folder under the key 'stage', not '\.\./\.\./x'",
        ),
        ('{"event": "stage_began", "step": 0, "stage": "a"}', "a text under the key 'fingerprint', not None"),
        ('{"event": "failed", "step": 0, "stage": "a", "seconds": "x"}', "a number under the key 'seconds', not 'x'"),
    ],
)
def test_an_event_without_what_it_must_have_is_an_error_with_its_line(
    line: str, said: str, run_folder: Path, tmp_path: Path
) -> None:
    folder, number = with_line(run_folder, tmp_path, "events.jsonl", line)
    with pytest.raises(RecordFormatError, match=rf"events\.jsonl, line {number}: expected {said}"):
        _ = read_run(folder).events


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"step": 9, "loss": "x"}', "a number or null under the key 'loss', not 'x'"),
        ('{"step": 9, "loss": [1]}', r"a number or null under the key 'loss', not \[1\]"),
        (f'{{"step": 9, "kl": {HUGE}}}', "a number or null under the key 'kl', not 9"),
        ('{"step": "9"}', "a number under the key 'step', not '9'"),
        ('{"loss": 1}', "a number under the key 'step', not None"),
    ],
)
def test_a_figure_that_is_no_number_is_an_error_with_its_line(
    line: str, said: str, run_folder: Path, tmp_path: Path
) -> None:
    folder, number = with_line(run_folder, tmp_path, "metrics.jsonl", line)
    assert number == 5
    with pytest.raises(RecordFormatError, match=rf"metrics\.jsonl, line {number}: expected {said}"):
        read_run(folder).metrics()


def test_events_of_a_later_version_and_figures_that_are_not_finite_are_read(run_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run_folder, tmp_path / "copy")
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 9, "loss": NaN, "kl": 1e999, "done": true, "count": 7, "none": null}\n')
    with (folder / "events.jsonl").open("a") as file:
        file.write('{"event": "of_tomorrow", "step": 9, "why": [1], "figures": {"a": "b"}}\n')
    run = read_run(folder)
    assert [run.metrics()[-1][name] for name in ("kl", "done", "count")] == [math.inf, True, 7]
    assert run.events[-1]["why"] == [1]

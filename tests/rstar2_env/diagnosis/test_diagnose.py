"""``diagnose`` of folders in their true format: what it reads of them, and how it reports."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from cli_runner import run
from made_runs import MadeRun, write_training

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import RunWriter, read_run
from rstar2_env.diagnosis import diagnose
from rstar2_env.diagnosis.base import Evidence, RunCheck
from rstar2_env.diagnosis.examination import examine
from rstar2_env.diagnosis.folder import digests_of, read_folder
from rstar2_env.diagnosis.live import LiveDiagnosis
from rstar2_env.diagnosis.record import RunRecord, StepData


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of training of 24 steps."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    write_training(folder, MadeRun(steps=24, eval_every=12))
    return folder


@pytest.fixture
def broken(made: Path, tmp_path: Path) -> Path:
    """The run with a gradient of 0 from step 15 on."""
    folder = tmp_path / "broken"
    shutil.copytree(made, folder)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        if line["step"] >= 15 and "grad_norm" in line:
            line["grad_norm"] = 0.0
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_a_run_of_training_is_read_whole(made: Path) -> None:
    record, known = read_folder(made), read_run(made)
    assert [step.number for step in record.steps] == list(range(1, 25))
    assert [len(step.episodes) for step in record.steps] == [len(known.episodes(step)) for step in range(1, 25)]
    assert [one.number for one in record.evaluations] == [0, 12, 24]
    assert all(one.episodes and "pass_rate" in one.figures for one in record.evaluations)
    assert record.option("rollout.group_size") == 4


def test_the_keys_of_episodes_are_those_of_the_viewer(made: Path) -> None:
    key = read_folder(made).steps[2].episodes[5].key
    shown = run("view", made, "--text", "--episode", key, "--no-pager")
    assert shown.exit_code == 0
    assert read_folder(made).steps[2].episodes[5].problem in shown.output


def test_a_finding_has_its_first_step_and_ends_with_the_fault(broken: Path) -> None:
    (found,) = [one for one in diagnose(broken) if one.check == "gradient_zero"]
    assert (found.since, found.until, found.severity) == (15, None, "error")
    assert diagnose(broken, step=14).names.count("gradient_zero") == 0


def test_a_run_without_findings_says_what_was_looked_at_and_what_is_missing(made: Path) -> None:
    found = diagnose(made)
    assert "no findings" in found.summary
    assert {"all_wrong", "gradient_nan", "repetition"} <= set(found.silent)
    assert found.not_recorded["learning_rate_high"] == ["weights/change"]
    assert "Not recorded:" in str(found)


def test_the_command_prints_findings_and_json_holds_the_same(broken: Path) -> None:
    shown = run("diagnose", broken)
    assert shown.exit_code == 0
    assert "error: The gradient is zero (gradient_zero, since step 15)" in shown.output
    record = json.loads(run("diagnose", broken, "--json").stdout)
    assert record == json.loads(json.dumps(diagnose(broken).record()))
    assert [one["check"] for one in record["findings"]] == diagnose(broken).names


NOW = Evidence(since=8, until=None, says="It is.")
ONE_CHECK: dict[str, Any] = {
    **dict.fromkeys(("title", "looks_at", "rule", "cause", "otherwise"), "Words."),
    "change": (),
    "needs": (),
}


def test_findings_that_hold_come_by_severity_before_those_that_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, held, sooner = (
        RunCheck(**ONE_CHECK | {"name": name, "severity": severity, "look": lambda run, found=found: found})
        for name, severity, found in (
            ("ended", "error", Evidence(since=1, until=3, says="It was.")),
            ("held", "warning", Evidence(since=5, until=None, says="It is.")),
            ("sooner", "warning", Evidence(since=2, until=None, says="It is.")),
        )
    )
    note = RunCheck(**ONE_CHECK | {"name": "note", "severity": "note", "look": lambda run: NOW})
    found = examine(RunRecord("run", steps=[StepData(8)]), checks=[ended, note, held, sooner])
    assert found.names == ["sooner", "held", "note", "ended"]
    assert found.summary.endswith("2 warnings, 1 note, 1 finding that ended.")
    text = str(found)
    assert text.index("(note, since step 8)") < text.index("Findings that ended:") < text.index("(ended, step 1 to 3)")


def finding(name: str, severity: str, since: int, until: int | None = None, effects: tuple[str, ...] = ()) -> RunCheck:
    """A check that always finds its fault."""
    found = Evidence(since=since, until=until, says="It is.")
    return RunCheck(**ONE_CHECK | {"name": name, "severity": severity, "effects": effects, "look": lambda run: found})


def test_a_finding_comes_after_the_findings_that_usually_cause_it() -> None:
    checks = [
        finding("all_wrong", "error", 5),
        finding("other", "error", 6),
        finding("cut", "warning", 7, effects=("all_wrong",)),
        finding("loops", "note", 7, effects=("cut", "all_wrong")),
        finding("later", "warning", 20, effects=("all_wrong",)),
        finding("before", "warning", 1, 3, effects=("all_wrong",)),
    ]
    found = examine(RunRecord("run", steps=[StepData(30)]), checks=checks)
    assert found.names == ["loops", "cut", "all_wrong", "other", "later", "before"]
    assert found.findings[2].caused_by == ("loops", "cut", "before")
    assert "  Probably an effect of another finding: loops, cut, before" in str(found)
    assert [one.caused_by for one in found.findings if one.check in ("other", "later")] == [(), ()]


def test_findings_that_cause_each_other_are_each_listed_once() -> None:
    checks = [finding("one", "error", 1, effects=("two",)), finding("two", "note", 1, effects=("one",))]
    assert examine(RunRecord("run", steps=[StepData(9)]), checks=checks).names == ["two", "one"]


def test_a_notebook_shows_texts_of_a_run_as_texts(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "<b>run"
    shutil.copytree(made, folder)
    assert "<b>run" not in diagnose(folder)._repr_html_()
    assert "&lt;b&gt;run" in diagnose(folder)._repr_html_()


def test_a_step_before_the_first_is_refused(made: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not have a step at or before 0: its first step is 1"):
        diagnose(made, step=0)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not the folder of a run"):
        diagnose(tmp_path)


def test_a_live_diagnosis_says_once_when_a_finding_appears_and_once_when_it_ends(broken: Path) -> None:
    figures = {int(line["step"]): line for line in read_run(broken).metrics()}
    lines = (broken / "metrics.jsonl").read_text().splitlines(keepends=True)
    (broken / "metrics.jsonl").write_text("".join(line for line in lines if json.loads(line)["step"] <= 10))
    for file in sorted((broken / "episodes").glob("train-*")):
        if int(file.name[6:12]) > 10:
            file.rename(broken / file.name)
    live = LiveDiagnosis(broken)
    said = []
    for step in range(11, 25):
        (broken / f"train-{step:06d}.jsonl.gz").rename(broken / "episodes" / f"train-{step:06d}.jsonl.gz")
        own = figures[step] | ({"grad_norm": 0.4} if step >= 20 else {})
        said += [(step, one.finding.check, one.ended) for one in live.add(step, own)]
    assert [one for one in said if one[1] == "gradient_zero"] == [
        (17, "gradient_zero", False),
        (24, "gradient_zero", True),
    ]


def test_a_live_diagnosis_reads_the_episodes_of_the_first_and_the_last_steps_of_a_resumed_run(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rstar2_env.diagnosis.live._FIRST", 3)
    monkeypatch.setattr("rstar2_env.diagnosis.live._REMEMBERED", 4)
    read = []
    monkeypatch.setattr(
        "rstar2_env.diagnosis.folder.digests_of", lambda *place: read.append(place[1:]) or digests_of(*place)
    )
    live = LiveDiagnosis(made)
    assert read == [*(("train", step) for step in (1, 2, 3, 21, 22, 23, 24)), ("eval", 24)]
    assert [one.number for one in live.record.steps if one.figures] == list(range(1, 25))


def test_a_live_diagnosis_is_told_of_the_episodes_that_the_folder_holds(made: Path, tmp_path: Path) -> None:
    whole = read_folder(made)
    run = read_run(made)
    begun = RunWriter(tmp_path)
    begun.begin(run.config, processes=1)
    live = LiveDiagnosis(tmp_path)
    begun.told = live.wrote
    begun.train(1, [[entry.episode for entry in group] for group in run.groups(1)])
    begun.held_out(1, [entry.episode for entry in run.held_out(12)])
    shutil.rmtree(tmp_path / "episodes")
    live.evaluated(1, {"eval/pass_rate": 0.5})
    live.add(1, {"loss": 0.1})
    told, read = live.record.steps[0].episodes, whole.steps[0].episodes
    assert [(one.text, one.question, one.verdict, one.statuses) for one in told] == [
        (one.text, one.question, one.verdict, one.statuses) for one in read
    ]
    assert [one.key for one in told] == [f"train-1-{line}" for line in range(len(read))]
    assert [one.text for one in live.record.evaluations[-1].episodes] == [
        one.text for one in whole.evaluations[1].episodes
    ]


def test_a_live_diagnosis_reads_the_episodes_of_the_other_processes(made: Path, tmp_path: Path) -> None:
    run = read_run(made)
    writers = [RunWriter(tmp_path, rank=rank) for rank in range(2)]
    writers[0].begin(run.config, processes=2)
    live = LiveDiagnosis(tmp_path)
    writers[0].told = live.wrote
    for writer in writers:
        writer.train(1, [[entry.episode for entry in run.groups(1)[0]]])
    live.add(1, {"loss": 0.1})
    size = len(run.groups(1)[0])
    assert [one.rank for one in live.record.steps[0].episodes] == [0] * size + [1] * size


def test_an_evaluation_after_the_last_step_is_examined_at_once(made: Path, tmp_path: Path) -> None:
    RunWriter(tmp_path).begin(read_run(made).config, processes=1)
    live = LiveDiagnosis(tmp_path)
    said = [*live.evaluated(0, {"eval/pass_rate": 0.9, "eval/pass_rate_se": 0.01})]
    said += live.evaluated(1, {"eval/pass_rate": 0.9, "eval/pass_rate_se": 0.01})
    said += live.add(1, {"loss": 0.1})
    assert said == []
    live.add(2, {"loss": 0.1})
    fallen = live.evaluated(2, {"eval/pass_rate": 0.2, "eval/pass_rate_se": 0.01})
    assert [one.finding.check for one in fallen] == ["held_out_falls"]


def test_the_steps_between_two_logged_steps_keep_their_numbers(made: Path, tmp_path: Path) -> None:
    run = read_run(made)
    RunWriter(tmp_path).begin(run.config, processes=1)
    live = LiveDiagnosis(tmp_path)
    for step in (1, 2, 3):
        live.wrote("train", step, 0, [entry for _, _, entry in run.placed(step)])
    live.add(4, {"loss": 0.1})
    assert [(one.number, bool(one.episodes), bool(one.figures)) for one in live.record.steps] == [
        (1, True, False),
        (2, True, False),
        (3, True, False),
        (4, False, True),
    ]


def test_a_long_run_is_examined_at_fewer_steps(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rstar2_env.diagnosis.live._EXAMINED", 15)
    figures = {"loss": 0.1, "grad_norm": 0.0, "tokens/trained": 9.0}
    live = LiveDiagnosis(made)
    said = [(step, one.finding.check) for step in range(25, 31) for one in live.add(step, figures)]
    assert said == [(28, "gradient_zero")], "without the bound it is said at step 27"


def test_the_episodes_between_two_examinations_are_examined(broken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rstar2_env.diagnosis.live._EXAMINED", 15)
    monkeypatch.setattr("rstar2_env.diagnosis.live._REMEMBERED", 1)
    run = read_run(broken)
    figures = {int(line["step"]): line for line in run.metrics()}
    folder = broken.parent / "begun"
    begun = RunWriter(folder)
    begun.begin(run.config, processes=1)
    live = LiveDiagnosis(folder)
    begun.told = live.wrote
    for step in range(1, 25):
        begun.train(step, [[entry.episode for entry in group] for group in run.groups(step)])
        live.add(step, figures[step])
    assert [one.questions for one in live.record.steps] == [one.questions for one in read_folder(broken).steps]
    assert sum(bool(one.episodes) for one in live.record.steps) == 1


def test_a_finding_of_a_long_run_ends_after_five_examinations_without_it(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rstar2_env.diagnosis.live._EXAMINED", 15)
    live = LiveDiagnosis(made)
    said = []
    for step in range(25, 100):
        figures = {"loss": 0.1, "grad_norm": 0.0 if step <= 40 else 0.4, "tokens/trained": 9.0}
        said += [(step, one.ended) for one in live.add(step, figures) if one.finding.check == "gradient_zero"]
    examined = [step for step in range(41, 100) if step % (1 + step // 15) == 0]
    assert said[-1] == (examined[4], True)


def test_of_earlier_evaluations_only_the_questions_are_kept(made: Path, tmp_path: Path) -> None:
    run = read_run(made)
    begun = RunWriter(tmp_path)
    begun.begin(run.config, processes=1)
    live = LiveDiagnosis(tmp_path)
    begun.told = live.wrote
    for step in (1, 2):
        begun.held_out(step, [entry.episode for entry in run.held_out(12)])
        live.evaluated(step, {"eval/pass_rate": 0.5})
    first, last = live.record.evaluations
    assert (bool(first.episodes), bool(last.episodes)) == (False, True)
    assert first.questions == last.questions != frozenset()


def test_an_evaluation_is_diagnosed_from_its_folder(tmp_path: Path) -> None:
    out = tmp_path / "eval"
    done = run("eval", "rstar2/MathTool-v0", "--agent", "oracle", "--problems", "arithmetic", "-n", "8", "-o", out)
    assert done.exit_code == 0
    found = diagnose(out)
    assert found.kind == "evaluation"
    assert {"cut_by_tokens", "tool_fails", "sandbox_unavailable"} <= {*found.silent, *found.names}

"""The small files of a run are read leniently, each again once it has changed, and no value in them stops the list."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from run_sample import write_run

from rstar2_env.view.queries.run_facts import RunFacts

HUGE = "9" * 400


@pytest.mark.parametrize(
    ("line", "step", "told"),
    [
        (f'{{"step": 9, "loss": {HUGE}}}', 9, {"loss": None}),
        (f'{{"step": 9, "loss": -{HUGE}, "kl": 0.5}}', 9, {"loss": None, "kl": 0.5}),
        (f'{{"step": {HUGE}, "kl": 0.5}}', 0, {"kl": 0.5}),
        ('{"step": 9, "loss": 1e999}', 9, {"loss": None}),
        ('{"step": 9, "loss": true, "name": "x"}', 9, {}),
    ],
    ids=["integer", "negative integer", "step", "not finite", "no number"],
)
def test_a_number_of_any_size_in_the_metrics_is_read(tmp_path, line, step, told):
    write_run(tmp_path / "run", steps=1)
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
        file.write(line + "\n")
    facts = RunFacts(tmp_path / "run")
    assert told.items() <= facts.metrics[step].items()
    assert facts.row()["steps"] in (1, 9)


@pytest.mark.parametrize("key", ["step", "seconds"])
def test_a_number_of_any_size_in_an_event_is_read(tmp_path, key):
    write_run(tmp_path / "run", steps=1)
    with (tmp_path / "run" / "events.jsonl").open("a") as file:
        file.write(f'{{"event": "evaluation", "{key}": {HUGE}, "figures": {{"reward": {HUGE}}}}}\n')
    facts = RunFacts(tmp_path / "run")
    assert facts.metrics[0]["eval/reward"] is None
    assert facts.row()["steps"] == 1


def options_of(number: int) -> str:
    return json.dumps({"run": {"agent": f"agent {number}"}, "messages": []}) + "\n"


def test_the_options_of_an_evaluation_are_those_of_the_file_that_is_there(tmp_path):
    file = tmp_path / "eval.jsonl"
    file.write_text(options_of(1))
    facts = RunFacts(file)
    assert facts.config == {"agent": "agent 1"}
    with file.open("a") as opened:
        opened.write('{"messages": []}\n')
    assert facts.config == {"agent": "agent 1"}
    (tmp_path / "new").write_text(options_of(2))
    (tmp_path / "new").replace(file)
    assert facts.config == {"agent": "agent 2"}
    file.unlink()
    assert facts.config == {}


@pytest.mark.parametrize("line", ["", "not json\n", "[]\n", "{}\n", '{"run": 3}\n', '{"run": {"half": '])
def test_an_evaluation_that_does_not_tell_its_options_has_none(tmp_path, line):
    file = tmp_path / "eval.jsonl"
    file.write_text(line)
    facts = RunFacts(file)
    assert facts.config == {}
    assert facts.notes() == []
    file.write_text(options_of(3))
    assert facts.config == {"agent": "agent 3"}


def test_notes_are_told_while_other_threads_read_more_files(tmp_path):
    write_run(tmp_path / "run", steps=1)
    names = [f"{number}.json" for number in range(300)]
    for name in names:
        (tmp_path / "run" / name).write_text("no json")
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(5):
            facts = RunFacts(tmp_path / "run")
            with ThreadPoolExecutor(3) as threads:
                reads = [threads.submit(facts.object, name) for name in names]
                while not all(read.done() for read in reads):
                    assert len(facts.notes()) <= len(names)
            assert len(facts.notes()) == len(names)
    finally:
        sys.setswitchinterval(before)

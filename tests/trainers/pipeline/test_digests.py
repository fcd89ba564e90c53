"""What of a file or a folder counts as its content, and when it is read again."""

import json
import os
import tracemalloc

import pytest

from rstar2_env.trainers.pipeline.digests import Digests, differences, fingerprint, made_from
from rstar2_env.trainers.pipeline.state import states_of
from rstar2_env.trainers.record.checkpoints import mark_whole


@pytest.fixture
def digest(tmp_path):
    """The digest of a path, from the files as they are."""
    return lambda path, kind: Digests(tmp_path / "nothing").of(path, kind)


@pytest.fixture
def model(tmp_path):
    (tmp_path / "model").mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / "model" / name).write_text(name)
    return tmp_path / "model"


def test_of_a_model_what_it_is_loaded_from_counts(model, digest):
    before = digest(model, "model")
    for name in ("run.json", "README.md", "summary.json", "metrics.jsonl", "checkpoint-1/model.safetensors"):
        (model / name).parent.mkdir(exist_ok=True)
        (model / name).write_text("beside the model")
    assert digest(model, "model") == before
    (model / "tokenizer.json").write_text("another")
    assert digest(model, "model") != before


def test_where_the_pipelines_folder_lies_does_not_count(tmp_path):
    options = {name: {"model": [f"{tmp_path / name}/stages/a"]} for name in "xy"}
    assert len({fingerprint(options[name], tmp_path / name) for name in "xy"}) == 1
    assert made_from("train", options["x"], {}, tmp_path / "x")["options"] == {"model": ["./stages/a"]}


def test_what_differs_is_told_also_where_it_came_or_went():
    before, after = {"a": 1, "b": {"c": 2}, "d": 3}, {"a": 1, "b": {"c": 4}, "e": 5}
    assert list(differences(before, after)) == ["b.c was 2 and is 4", "d was 3 and is null", "e was null and is 5"]


def test_a_stage_that_was_set_aside_is_not_known():
    began = {"event": "stage_began", "stage": "a", "fingerprint": "f"}
    assert states_of([began])["a"].fingerprint == "f"
    assert states_of([began, {"event": "stage_replaced", "stage": "a"}]) == {}


def test_the_names_of_files_count(model, digest):
    before = digest(model, "model")
    (model / "tokenizer.json").rename(model / "vocab.json")
    assert digest(model, "model") != before


def test_of_an_optimizer_the_state_in_the_newest_checkpoint_counts(tmp_path, digest):
    def write(step, whole=True, **files):
        for name, text in files.items():
            file = tmp_path / f"checkpoint-{step}" / name.replace("__", "/").replace("_", ".")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        if whole:
            mark_whole(tmp_path / f"checkpoint-{step}", 1)

    assert digest(tmp_path, "optimizer") is None
    write(1, optimizer_json="AdamW", optimizer_pt="momenta")
    before = digest(tmp_path, "optimizer")
    assert before == digest(tmp_path / "checkpoint-1", "optimizer") is not None
    write(1, model_safetensors="weights", shards___metadata="another time")
    write(2, whole=False, optimizer_pt="other momenta")
    (tmp_path / "run.json").write_text("{}")
    assert digest(tmp_path, "optimizer") == before
    found = {before}
    write(1, optimizer_pt="some momenta")
    found.add(digest(tmp_path, "optimizer"))
    write(1, shards__0_distcp="a part")
    found.add(digest(tmp_path, "optimizer"))
    write(1, optimizer_json="SGD")
    found.add(digest(tmp_path, "optimizer"))
    write(2)
    found.add(digest(tmp_path, "optimizer"))
    assert len(found) == 5


def test_of_episodes_what_was_played_counts(tmp_path, digest):
    file = tmp_path / "eval" / "episodes" / "eval-000000.jsonl"
    file.parent.mkdir(parents=True)

    def digest_of(*lines):
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return digest(tmp_path / "eval", "episodes")

    first, second = {"group": 0, "reward": 1.0, "seconds": 3.0, "run": "/here"}, {"group": 1, "reward": 0.0}
    whole = digest_of(first, second)
    (tmp_path / "eval" / "metrics.jsonl").write_text("{}")
    assert digest_of(second, {**first, "seconds": 4.0, "run": "/there"}) == whole
    assert digest_of({**first, "reward": 0.5}, second) != whole
    assert digest(tmp_path, "episodes") is None
    assert digest_of(first, second, second) != whole


def test_a_file_of_episodes_is_never_in_memory_as_a_whole(tmp_path, digest):
    file = tmp_path / "episodes" / "eval-000000.jsonl"
    file.parent.mkdir()
    with file.open("w") as opened:
        opened.writelines(json.dumps({"group": n, "text": "x" * 20_000}) + "\n" for n in range(400))
    tracemalloc.start()
    assert digest(tmp_path, "episodes")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < file.stat().st_size / 8


def test_a_file_of_weights_is_never_in_memory_as_a_whole(model, digest):
    with (model / "model.safetensors").open("r+b") as weights:
        weights.truncate(1 << 26)
    tracemalloc.start()
    assert digest(model, "model")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 24


@pytest.mark.parametrize("damaged", [b'{"group": 0, "rew', b"\xff", b"[1]", b"7"])
def test_a_damaged_line_of_episodes_is_another_content_and_no_error(tmp_path, digest, damaged):
    file = tmp_path / "episodes" / "eval-000000.jsonl"
    file.parent.mkdir()
    found = set()
    for more in (b"", damaged + b"\n", damaged + b"0\n"):
        file.write_bytes(b'{"group": 0}\n' + more)
        found.add(digest(tmp_path, "episodes"))
    assert len(found) == 3


@pytest.mark.parametrize(("text", "time"), [("new!", 1), ("longer", 0)])
def test_a_file_is_read_again_when_its_size_or_its_time_changes(tmp_path, text, time):
    file, digests = tmp_path / "x.jsonl", Digests(tmp_path)
    file.write_text("text")
    os.utime(file, (0, 0))
    before = digests.of(file, "traces")
    file.write_text(text)
    os.utime(file, (time, time))
    assert digests.of(file, "traces") != before


def test_what_a_stage_left_is_read_whatever_its_size_and_time_are(tmp_path):
    file, digests = tmp_path / "x.jsonl", Digests(tmp_path)
    found = []
    for text in ("text", "new!"):
        file.write_text(text)
        os.utime(file, (0, 0))
        found.append(digests.of(file, "traces", sync=True))
    assert found[0] != found[1]

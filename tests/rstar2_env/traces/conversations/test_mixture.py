"""Claims about mixtures of conversations from copies of data sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conversation_rows import APIGEN, GLAIVE, MAGICODER, NEMOTRON, TOOLACE, TULU

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.problems.prepare import Lock, Shelf
from rstar2_env.traces.conversations import CONVERSATION_SETS, mix_conversations

pytest.importorskip("datasets", reason="reads data sets: the extra 'train'")
ROWS: dict[str, dict[str, Any]] = {
    "toolace": TOOLACE,
    "apigen-mt": APIGEN,
    "glaive": GLAIVE,
    "magicoder": MAGICODER,
    "tulu-if": TULU,
    "nemotron-chat": NEMOTRON,
}


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of every set, of three usable rows and an unusable one."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    for name, row in ROWS.items():
        entry = CONVERSATION_SETS[name]
        folder = tmp_path / "copies" / entry.hub
        folder.mkdir(parents=True)
        files = f"  data_files:\n  - split: {entry.split}\n    path: rows.jsonl\n"
        (folder / "README.md").write_text(f"---\nconfigs:\n- config_name: {entry.config or 'default'}\n{files}---\n")
        empty = {key: "" if isinstance(value, str) else [] for key, value in row.items()}
        rows = [{**one, "not_read": number} for number, one in enumerate([row, row, row, empty])]
        (folder / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows), "utf-8")
    return tmp_path / "copies"


def a_shelf(copies: Path, lock: Path | None = None) -> Shelf:
    return Shelf(Lock(lock), str(copies), say=lambda text: None)


def test_every_set_of_the_papers_cold_start_is_read_from_a_copy(copies: Path, tmp_path: Path) -> None:
    shelf = a_shelf(copies, tmp_path / "x.lock")
    found = mix_conversations(dict.fromkeys(CONVERSATION_SETS, 2), shelf, seed=1)
    assert found.rows == dict.fromkeys(ROWS, 4)
    assert found.taken == dict.fromkeys(ROWS, 2)
    assert all(sum(why.values()) == 1 for why in found.unusable.values())
    assert len(found.records) == 12
    assert [record["source"] for record in found.records] != sorted(record["source"] for record in found.records)
    assert all(pin.checksum.startswith("sha256:") and pin.records == 4 for pin in shelf.lock.pins.values())
    again = mix_conversations(dict.fromkeys(CONVERSATION_SETS, 2), a_shelf(copies), seed=1)
    assert again.records == found.records


def test_what_is_mixed_can_be_trained_on(copies: Path) -> None:
    pytest.importorskip("transformers", reason="tokenizes: the extra 'train'")
    from rstar2_env.rollout import ChatCodec
    from rstar2_env.trainers.demonstration.tiny import tiny_tokenizer

    codec = ChatCodec(tiny_tokenizer())
    from rstar2_env.core.episode import Message

    for record in mix_conversations(dict.fromkeys(CONVERSATION_SETS, 1), a_shelf(copies)).records:
        told = [Message(one["role"], one["content"]) for one in record["messages"]]
        ids, mask = codec.conversation(told)
        assert 0 < sum(mask) < len(ids)


def test_a_file_of_messages_is_a_source_too(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    file.write_text(json.dumps(TULU) + "\n" + json.dumps({"messages": []}) + "\n", "utf-8")
    found = mix_conversations({str(file): None}, a_shelf(tmp_path))
    assert found.report() == {
        "conversations": 1,
        "rows": {str(file): 2},
        "taken": {str(file): 1},
        "unusable": {str(file): {"the turns of user and policy do not alternate": 1}},
    }


def test_of_a_source_conversations_are_chosen_at_random(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    turns = [[{"role": "user", "content": str(n)}, {"role": "assistant", "content": "y"}] for n in range(30)]
    file.write_text("".join(json.dumps({"messages": one}) + "\n" for one in turns), "utf-8")
    chosen = []
    for seed in range(2):
        records = mix_conversations({str(file): 5}, a_shelf(tmp_path), seed=seed).records
        chosen.append({int(record["messages"][0]["content"]) for record in records})
    assert len(chosen[0]) == len(chosen[1]) == 5
    assert chosen[0] != chosen[1]
    assert set(range(5)) not in chosen


def test_a_source_without_a_usable_row_and_an_unknown_one_are_named(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    file.write_text("{}\n", "utf-8")
    with pytest.raises(ConfigurationError, match=r"None of the 1 rows of .*own\.jsonl"):
        mix_conversations({str(file): None}, a_shelf(tmp_path))
    with pytest.raises(UnknownNameError, match="toolace"):
        mix_conversations({"toolacce": None}, a_shelf(tmp_path))


def test_the_sizes_and_licences_of_the_papers_sets_are_written_down() -> None:
    assert {entry.licence for entry in CONVERSATION_SETS.values()}.isdisjoint({"", "not stated"})
    assert all(entry.hub.count("/") == 1 for entry in CONVERSATION_SETS.values())

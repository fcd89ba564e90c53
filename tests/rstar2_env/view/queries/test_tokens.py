"""Tokens are shown by their ids where no tokenizer is, and a line of another form is no reason to fail."""

from __future__ import annotations

import json

import pytest
from run_sample import write_run

from rstar2_env.view.index import RunIndex
from rstar2_env.view.queries.tokens import tokens_of

PLACE = {"step": 1, "group": 0, "member": 1}
WHOLE = {"prompt_ids": [1], "completion_ids": [2, 3], "mask": [1, 0], "logprobs": [-0.5, 0.0]}


def told(tmp_path, line: dict) -> dict:
    run = tmp_path / "run"
    write_run(run, steps=1)
    (run / "tokens" / "train-000001.jsonl.gz").unlink()
    (run / "tokens" / "train-000001.jsonl").write_text(json.dumps({**PLACE, **line}) + "\n")
    with RunIndex(run, tmp_path / "cache") as index:
        index.refresh()
        return tokens_of(index, {}, "train-1-1")


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("value", [5, "text", {"a": 1}, True, None], ids=repr)
def test_a_list_of_another_form_counts_as_empty(tmp_path, name, value):
    found = told(tmp_path, {**WHOLE, name: value})
    assert [one["id"] for one in found["tokens"]] == ([] if name == "completion_ids" else [2, 3])
    assert found["prompt_ids"] == (0 if name == "prompt_ids" else 1)
    assert [one["mask"] for one in found["tokens"]] == {"completion_ids": [], "mask": [None, None]}.get(name, [1, 0])


def test_what_no_tokenizer_takes_is_no_token(tmp_path):
    found = told(tmp_path, {**WHOLE, "completion_ids": [2, -1, 10**400, 2**32, 2.5, "3", None, 2**32 - 1]})
    assert [one["text"] for one in found["tokens"]] == ["⟨2⟩", f"⟨{2**32 - 1}⟩"]

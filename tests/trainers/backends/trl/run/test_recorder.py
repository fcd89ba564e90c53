"""``RunRecorder``: weights in the run's folder are replaced only by whole ones."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from transformers import AutoTokenizer

from rstar2_env.core.run_folder import RunWriter, read_run
from rstar2_env.trainers.backends.trl.run.recorder import RunRecorder


class Weights:
    """Writes a model in two files; the disk is full after the first one if ``full`` is set."""

    def __init__(self):
        self.state, self.full = SimpleNamespace(global_step=1), False

    def save_model(self, folder):
        Path(folder).mkdir()
        (Path(folder) / "config.json").write_text(str(self.state.global_step))
        if self.full:
            raise OSError("No space left on device")
        (Path(folder) / "model.safetensors").write_text(str(self.state.global_step))


def test_earlier_weights_stay_until_the_new_ones_are_whole(tiny_model, tmp_path):
    setup = SimpleNamespace(ranks=SimpleNamespace(rank=0, size=1, wait=lambda: None), folder=tmp_path)
    files, weights, tokenizer = RunWriter(tmp_path), Weights(), AutoTokenizer.from_pretrained(tiny_model)
    files.begin({})
    recorder, best = RunRecorder(setup, files, weights, tokenizer, None), tmp_path / "best"

    def stored():
        return [(best / name).read_text() for name in ("config.json", "model.safetensors")]

    recorder.save(str(best))
    assert stored() == ["1", "1"]
    weights.state.global_step, weights.full = 2, True
    with pytest.raises(OSError, match="No space"):
        recorder.save(str(best))
    assert stored() == ["1", "1"]
    assert read_run(tmp_path).weights == {"best": 1}
    weights.full = False
    recorder.save(str(best))
    assert stored() == ["2", "2"]
    assert read_run(tmp_path).weights == {"best": 2}
    assert {path.name for path in tmp_path.iterdir() if path.name.startswith("best")} == {"best"}

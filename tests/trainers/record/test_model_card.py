"""The card of a run says what was trained, on what, how and how it went, and the hub can read its head."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_runner import run

from rstar2_env import trainers
from rstar2_env.core.run_folder import RunWriter, read_run
from rstar2_env.core.version import __version__
from rstar2_env.trainers.record.model_card import model_card, write_cards

OPTIONS: dict[str, Any] = {
    "model": "Qwen/Qwen3-14B",
    "steps": 40,
    "loss": ["ppo_clip", {"name": "kl", "coef": 0.01}],
    "env_options": {"problems": "arithmetic:level=2", "max_turns": 3},
    "wrappers": ["fault_injection:rate=0.1"],
}


def a_run(folder: Path, rates: list[float], **options: Any) -> Path:
    config = trainers.TRAINERS.get("grpo_roc").configure({**OPTIONS, **options})
    writer = RunWriter(folder)
    writer.begin({"trainer": "grpo_roc", **config.record()})
    for number, rate in enumerate(rates):
        step = 20 * number
        if step:
            writer.metrics(step, {"loss": 0.0})
        writer.event("evaluation", step, figures={"pass_rate": rate, "pass_rate_se": 0.001, "tool_error_share": 0.1})
        if rate == max(rates[: number + 1]):
            (folder / "best").mkdir(exist_ok=True)
            writer.event("saved", step, path="best")
    (folder / "final").mkdir()
    writer.event("saved", 40, path="final")
    writer.event("finished", 40)
    return folder


def head(card: str) -> dict[str, Any]:
    _, front, _ = card.split("---\n", 2)
    found: dict[str, Any] = yaml.safe_load(front)
    return found


def test_the_head_is_what_the_hub_reads(tmp_path: Path) -> None:
    from huggingface_hub import ModelCard

    card = model_card(read_run(a_run(tmp_path / "run", [0.2, 0.6])))
    data = ModelCard(card).data.to_dict()
    assert data == head(card)
    assert data["base_model"] == "Qwen/Qwen3-14B"
    assert (data["library_name"], data["pipeline_tag"]) == ("transformers", "text-generation")
    assert data["tags"] == ["rstar2-env", "reinforcement-learning", "grpo_roc"]


def test_a_model_of_this_machine_is_no_model_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "start").mkdir(parents=True)
    for name, model in (("one", "runs/start"), ("two", str(tmp_path))):
        card = model_card(read_run(a_run(tmp_path / name, [], model=model)))
        assert "base_model" not in head(card)
        assert f"The model `{Path(model).name}`, trained on" in card
        assert str(tmp_path) not in card


def test_it_names_the_recipe_its_parts_with_options_and_papers_and_the_data(tmp_path: Path) -> None:
    card = model_card(read_run(a_run(tmp_path / "run", [0.2, 0.6])))
    assert "arXiv 2508.20722" in card
    rows = [line for line in card.splitlines() if line.startswith("| ")]
    assert any("`roc`" in row and "`mode=sample`" in row and "arXiv" in row for row in rows)
    assert any("`kl`" in row and "`coef=0.01`" in row for row in rows)
    assert any("fault_injection" in row for row in rows)
    assert any("arithmetic:level=2" in row for row in rows)
    assert f"rstar2-env {__version__}" in card
    assert "[None]" not in card


@pytest.mark.parametrize(
    ("rates", "says", "columns"),
    [
        ([0.2, 0.6, 0.5], "Better: ", "| step 0 | step 20 (best) | step 40 |"),
        (
            [0.6, 0.5, 0.4],
            "Worse: the held-out pass rate went from 0.6000 to 0.4000",
            "| step 0 (best) | step 40 |",
        ),
        ([], "it is unknown which step is the best", ""),
    ],
)
def test_it_says_how_the_run_went(tmp_path: Path, rates: list[float], says: str, columns: str) -> None:
    card = model_card(read_run(a_run(tmp_path / "run", rates)))
    assert says in card
    assert columns in card
    if rates:
        shown = [rate for number, rate in enumerate(rates) if number in (0, rates.index(max(rates)), len(rates) - 1)]
        assert f"| pass rate | {' | '.join(f'{rate:.4g}' for rate in shown)} |" in card


def test_the_run_and_each_of_its_weights_have_a_card(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "run", [0.2, 0.6, 0.5])
    (folder / "best" / "README.md").write_text("another's stub")
    write_cards(folder)
    whole, best, final = ((folder / part / "README.md").read_text() for part in (".", "best", "final"))
    assert "40 of 40 optimizer steps are done." in whole
    assert "the weights after step 20 of 40" in best
    assert "the weights after step 40 of 40" in final
    assert not list(folder.rglob("*.part"))


def test_its_command_evaluates_the_model(tmp_path: Path, tiny_model: Path) -> None:
    card = model_card(read_run(a_run(tmp_path / "run", [0.5])))
    (command,) = [line for line in card.splitlines() if line.startswith("rstar2 eval")]
    words = shlex.split(command)[1:]
    assert words[words.index("--model") + 1] in ("best", "final")
    words[words.index("--model") + 1] = str(tiny_model)
    words[words.index("evaluation")] = str(tmp_path / "evaluation")
    for option, number in {"--episodes": "1", "--samples": "1", "--max-tokens": "8"}.items():
        words[words.index(option) + 1] = number
    done = run(*words, columns=1000)
    assert done.exit_code == 0, done.output
    config = read_run(tmp_path / "evaluation").config
    assert (config["env_options"]["max_turns"], config["model"]) == (3, str(tiny_model))


def test_what_is_not_known_yet_is_left_open(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    writer.begin({"trainer": "mine", "parts": {"selector": {"name": "./gone.py:Mine"}, "loss": []}})
    card = model_card(read_run(tmp_path / "run"))
    assert "`./gone.py:Mine`" in card
    assert "`mine`" in card


@pytest.mark.parametrize("token", ["raw-token-4f1c", "raw,token)4f1c"])
def test_a_token_that_stands_in_the_options_of_a_run_is_in_no_card(tmp_path: Path, token: str) -> None:
    # A run of this version holds *** instead; another program, or a person, may have written the options.
    folder = a_run(tmp_path / "run", [0.5], env_options={"problems": "arithmetic"})
    config = json.loads((folder / "config.json").read_text())
    config["rollout"]["env_options"]["sandbox"] = {"provider": "remote", "url": "http://127.0.0.1:1", "token": token}
    config["rollout"]["env_options"]["verifier"] = "model:url=http://127.0.0.1:2,api_key=text-4f1c"
    (folder / "config.json").write_text(json.dumps(config))
    card = model_card(read_run(folder))
    write_cards(folder)
    cards = [card, *(file.read_text() for file in folder.rglob("README.md"))]
    assert len(cards) > 2
    for one in cards:
        assert "http://127.0.0.1:1" in one
        assert "***" in one
        assert "4f1c" not in one


def test_a_cold_start_has_a_card_too(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "start", kind="sft")
    writer.begin({"model": "Qwen/Qwen3-14B", "steps": 3, "note": "a|b"}, config_file="sft.json", traces=12)
    card = model_card(read_run(tmp_path / "start"))
    assert head(card)["base_model"] == "Qwen/Qwen3-14B"
    assert "12 tool-use traces" in card
    assert "a\\|b" in card
    assert json.loads((tmp_path / "start" / "sft.json").read_text())["steps"] == 3

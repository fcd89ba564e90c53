"""Every named check of tokens finds what it is named for, and nothing in what is right."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from chat_families import FAMILIES, Family, make_tokenizer
from cli_runner import run
from places import DOCS

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.run_folder import RunWriter, TokensEntry
from rstar2_env.core.turn import Turn
from rstar2_env.rollout import ChatCodec
from rstar2_env.rollout.token_checks.findings import ROW_CHECKS, TEMPLATE_CHECKS, Findings, Severity, TokenFinding
from rstar2_env.rollout.token_checks.rows import check_row
from rstar2_env.rollout.token_checks.template import check_template

MESSAGES = [
    Message("system", "Solve the problem."),
    Message("user", "What is 6 * 7?"),
    Message("assistant", "Let me run it."),
    Message("user", "<tool_response>\n42\n</tool_response>"),
    Message("assistant", "The answer is 42."),
]
families = pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name + "".join(f"-{o}" for o in f.options))


@cache
def codec_of(family: Family) -> ChatCodec:
    return ChatCodec(make_tokenizer(family), chat_template_options=family.options)


def played(family: Family = FAMILIES[0]) -> tuple[TokensEntry, Episode]:
    """A row and its episode, with two turns and what the environment showed between them."""
    codec = codec_of(family)
    prompt = codec.prompt(MESSAGES[0].content, MESSAGES[1].content)
    ids, mask = codec.conversation(MESSAGES)
    ids, mask = ids[len(prompt) :], mask[len(prompt) :]
    first = mask.index(0)
    second = first + mask[first:].index(1)
    # What the template writes before a turn's text is the policy's too, where it has such a head.
    messages = [
        Message(one.role, codec.text(ids[span[0] : span[1]]) if span else one.content)
        for one, span in zip(MESSAGES, [None, None, (0, first), None, (second, len(ids))], strict=True)
    ]
    episode = Episode(messages=messages, steps=[Turn(0, first), Turn(second, len(ids))], end="answered")
    logprobs = [-0.5 * one for one in mask]
    return TokensEntry(1, 0, 0, prompt, ids, mask, logprobs, [0.5] * len(ids), [1.0] * len(ids)), episode


def found(row: TokensEntry, episode: Episode | None = None, **options: Any) -> list[str]:
    return [finding.check for finding in check_row(row, episode=episode, **options)]


@families
def test_nothing_is_found_in_a_row_that_is_right(family: Family) -> None:
    row, episode = played(family)
    assert found(row, episode, codec=codec_of(family), vocabulary=len(codec_of(family).tokenizer)) == []


def at(values: list[Any], place: int, value: Any) -> list[Any]:
    return [*values[:place], value, *values[place + 1 :]]


def _environment(row: TokensEntry) -> int:
    return row.mask.index(0)


WRONG: dict[str, Callable[[TokensEntry], dict[str, Any]]] = {
    "no_prompt_ids": lambda row: {"prompt_ids": []},
    "empty_response": lambda row: {"completion_ids": []},
    "length_mismatch": lambda row: {"advantages": row.advantages[1:]},
    "no_logprobs": lambda row: {"logprobs": []},
    "logprob_misalign": lambda row: {"logprobs": row.logprobs[1:]},
    "invalid_token_id": lambda row: {"completion_ids": at(row.completion_ids, 2, 10**6)},
    "invalid_loss_mask": lambda row: {"mask": at(row.mask, 0, 2)},
    "nothing_trainable": lambda row: {"mask": [0] * len(row.mask), "logprobs": [0.0] * len(row.mask)},
    "invalid_logprob": lambda row: {"logprobs": at(row.logprobs, 0, float("nan"))},
    "positive_logprob": lambda row: {"logprobs": at(row.logprobs, 0, 0.1)},
    "masked_has_logprob": lambda row: {"logprobs": at(row.logprobs, _environment(row), -1.0)},
    "certain_tokens": lambda row: {"logprobs": at(row.logprobs, 0, 0.0)},
    "ratio_drift": lambda row: {"ratios": [1.3] * len(row.ratios)},
    "turn_spans": lambda row: {"mask": at(row.mask, _environment(row), 1)},
    "prompt_mismatch": lambda row: {"prompt_ids": row.prompt_ids[1:]},
    "text_mismatch": lambda row: {"completion_ids": at(row.completion_ids, 0, row.completion_ids[1])},
    "environment_tokens": lambda row: {
        "completion_ids": at(row.completion_ids, _environment(row) + 6, row.completion_ids[0])
    },
}


@pytest.mark.parametrize("check", WRONG)
def test_every_check_of_rows_finds_what_it_is_named_for(check: str) -> None:
    row, episode = played()
    wrong = found(replace(row, **WRONG[check](row)), episode, codec=codec_of(FAMILIES[0]), vocabulary=10_000)
    assert check in wrong
    assert [name for name in wrong if name not in (check, "not_canonical", "certain_tokens")] == []


def test_negative_ids_are_found_without_a_vocabulary() -> None:
    row, _ = played()
    assert found(replace(row, prompt_ids=[-1])) == ["invalid_token_id"]


def test_an_episode_without_turns_or_with_an_empty_one_is_found() -> None:
    row, episode = played()
    assert found(row, Episode(messages=episode.messages)) == ["no_turns"]
    first, second = episode.steps
    episode.steps = [first, Turn(first.stop, first.stop), second]
    assert found(row, episode) == ["empty_completion"]


def test_a_turn_that_was_cut_and_goes_on_is_found() -> None:
    row, episode = played()
    codec = codec_of(FAMILIES[0])
    cut = episode.steps[0].stop - 1
    suffix = codec.suffix("user", MESSAGES[3].content, ended=False)
    rest = row.completion_ids[episode.steps[1].start :]
    ids = [*row.completion_ids[:cut], *suffix, *rest]
    mask = [1] * cut + [0] * len(suffix) + [1] * len(rest)
    episode.steps = [Turn(0, cut), Turn(cut + len(suffix), len(ids))]
    numbers = {"mask": mask, "logprobs": [-0.5 * one for one in mask], "advantages": mask, "ratios": []}
    assert found(replace(row, completion_ids=ids, **numbers), episode, codec=codec) == ["truncated_turn"]


def test_a_turn_that_repeats_itself_is_found() -> None:
    row, _ = played()
    ids = row.completion_ids[:2] * 20
    same = replace(row, completion_ids=ids, mask=[1] * 40, logprobs=[-1.0] * 40, advantages=[0.0] * 40, ratios=[])
    assert found(same, Episode(steps=[Turn(0, 40)])) == ["degenerate_rollout"]


def test_tokens_that_spell_a_text_in_another_way_are_told_and_no_fault() -> None:
    row, episode = played()
    codec = codec_of(FAMILIES[0])
    tokenizer = codec.tokenizer
    text = MESSAGES[2].content
    letters = [i for letter in text for i in tokenizer.encode(letter, add_special_tokens=False)]
    ids = [*letters, row.completion_ids[episode.steps[0].stop - 1], *row.completion_ids[episode.steps[0].stop :]]
    shift = len(ids) - len(row.completion_ids)
    first, second = episode.steps
    episode.steps = [Turn(0, first.stop + shift), Turn(second.start + shift, second.stop + shift)]
    mask = [1] * shift + row.mask
    numbers = {"mask": mask, "logprobs": [-0.5 * one for one in mask], "advantages": mask, "ratios": []}
    assert found(replace(row, completion_ids=ids, **numbers), episode, codec=codec) == ["not_canonical"]


EXPECTED = {
    "qwen2_5": {"default_system"},
    "qwen3": {"rewrites_history"},
    "llama3": {"strips_text"},
    "llama3_1": {"strips_text", "default_system"},
    "llama3_2": {"strips_text", "default_system"},
    "deepseek_r1_distill": {"rewrites_history"},
    "gptoss": {"rewrites_history", "default_system", "changes_by_day"},
}


@families
def test_templates_of_the_field_are_fit(family: Family) -> None:
    found = Findings(TEMPLATE_CHECKS)
    found.add(check_template(make_tokenizer(family), chat_template_options=family.options))
    assert found.fit
    assert set(found.counts) == EXPECTED.get(family.name, set())


CHATML_BODY = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
OPEN = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
BROKEN = {
    "no_chat_template": "{{ messages[0]['content'] }}",
    "no_stop_token": "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}",
    "no_system_role": "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no') }}{% endif %}"
    + CHATML_BODY
    + OPEN,
    "changes_by_day": "{{ strftime_now('%d %b %Y') }}" + CHATML_BODY + OPEN,
    "rewrites_history": "{{ messages | length }}" + CHATML_BODY + OPEN,
}


def broken(template: str, **options: Any) -> list[str]:
    tokenizer = make_tokenizer(FAMILIES[0])
    if "im_end" not in template:
        tokenizer.eos_token = None
    return [finding.check for finding in check_template(tokenizer, chat_template=template, **options)]


@pytest.mark.parametrize("check", BROKEN)
def test_what_is_wrong_with_a_template_that_nobody_knows_is_told(check: str) -> None:
    assert check in broken(BROKEN[check])


def test_a_template_is_held_against_its_model() -> None:
    fine = CHATML_BODY + OPEN
    assert broken(fine) == []
    assert broken(fine, vocabulary=10) == ["invalid_token_id"]
    assert broken(fine, model_stops=[0]) == ["not_a_stop"]


def test_a_tool_that_prints_a_special_token_is_found_where_it_becomes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = ChatCodec._ids
    monkeypatch.setattr(ChatCodec, "_encode", lambda self, scaffold, texts: plain(self, _filled(scaffold, texts)))
    assert "injection" in broken(CHATML_BODY + OPEN)


def _filled(scaffold: Any, texts: Any) -> str:
    from rstar2_env.rollout.scaffold import fill

    return fill(scaffold, texts)


def test_the_verdict_follows_the_severest_finding() -> None:
    def verdict(*checks: str) -> tuple[bool, str]:
        findings = Findings(ROW_CHECKS)
        findings.add(TokenFinding(check, "here") for check in checks)
        return findings.fit, findings.verdict

    assert verdict() == (True, "Fit for training: all checks passed.")
    assert verdict("certain_tokens") == (True, "Fit for training: all checks passed.")
    assert verdict("truncated_turn") == (True, "Fit for training, with warnings: truncated_turn.")
    assert verdict("truncated_turn", "no_logprobs") == (False, "Not fit for training: no_logprobs.")
    assert {check.severity for check in ROW_CHECKS.values()} == set(Severity)


class TestCommand:
    def test_a_model_gets_a_verdict(self, tiny_model: Path) -> None:
        done = run("validate", "--tokens", tiny_model)
        assert done.exit_code == 0, done.output
        assert "Fit for training, with warnings: lossy_text." in " ".join(done.output.split())

    def test_a_template_that_does_not_fit_ends_with_1(self, tiny_model: Path) -> None:
        done = run("validate", "--tokens", tiny_model, "--chat-template", BROKEN["no_chat_template"], "--json")
        assert done.exit_code == 1
        told = json.loads(done.stdout)
        assert not told["fit"]
        assert [(one["check"], one["severity"]) for one in told["template"]["findings"]] == [
            ("no_chat_template", "fatal")
        ]

    def test_the_rows_of_a_run_are_checked_with_its_own_tokenizer(self, tiny_model: Path, tmp_path: Path) -> None:
        def write(name: str, **changes: Any) -> Path:
            row, episode = tiny_row(tiny_model)
            writer = RunWriter(tmp_path / name, tokens=True)
            writer.begin({"trainer": "grpo", "model": {"path": str(tiny_model)}})
            writer.train(1, [[episode]])
            writer.tokens([replace(row, **changes)])
            return tmp_path / name

        done = run("validate", "--tokens", write("right"))
        assert done.exit_code == 0, done.output
        assert "1 rows: Fit for training: all checks passed." in " ".join(done.output.split())
        wrong = run("validate", "--tokens", write("wrong", prompt_ids=[1, 2, 3]), "--json")
        assert wrong.exit_code == 1
        assert [one["check"] for one in json.loads(wrong.stdout)["rows"]["findings"]] == ["prompt_mismatch"]

    def test_a_run_without_tokens_is_told_so(self, tmp_path: Path) -> None:
        RunWriter(tmp_path / "run").begin({"trainer": "grpo", "model": {"path": "nowhere"}})
        done = run("validate", "--tokens", tmp_path / "run")
        assert done.exit_code == 0
        assert "no_sampled_ids" in done.output

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["no/such-model"], "no/such-model"),
            (["RUN", "--step", "9"], "not have a training step 9"),
            (["no", "--step", "1"], "a run"),
            ([], "Name the folder of a run or a model"),
            (["GGUF"], "model.Q4.gguf: name this file itself"),
            (["--model", "GGUF"], "does not contain a tokenizer: expected a folder with tokenizer.json"),
            (["PROBLEMS"], "first line has the keys question, answer"),
            (["TEXT"], "notes.txt does not contain a tokenizer: expected a folder with tokenizer.json"),
        ],
    )
    def test_mistakes_are_told(self, arguments: list[str], words: str, tmp_path: Path) -> None:
        RunWriter(tmp_path / "run").begin({"trainer": "grpo"})
        (tmp_path / "gg").mkdir()
        (tmp_path / "gg" / "model.Q4.gguf").write_bytes(b"GGUF")
        (tmp_path / "problems.jsonl").write_text('{"question": "1 + 1?", "answer": 2}\n')
        (tmp_path / "notes.txt").write_text("a text\n")
        places = {"RUN": str(tmp_path / "run"), "GGUF": str(tmp_path / "gg")}
        places |= {"PROBLEMS": str(tmp_path / "problems.jsonl"), "TEXT": str(tmp_path / "notes.txt")}
        named = [places.get(one, one) for one in arguments]
        done = run("validate", "--tokens", *named)
        assert done.exit_code == 2
        assert words in " ".join(done.output.split())

    def test_a_model_alone_is_checked_and_a_folder_without_a_tokenizer_is_refused_without_transformers(
        self, tiny_model: Path, tmp_path: Path
    ) -> None:
        done = run("validate", "--tokens", "--model", tiny_model)
        assert done.exit_code == 0, done.output
        assert "lossy_text" in done.output
        code = (
            "import sys\nfrom rstar2_env.cli import main\n"
            f"try:\n    main(['validate', '--tokens', {str(tmp_path)!r}])\nexcept SystemExit as end:\n"
            "    print(end.code, 'transformers' in sys.modules)"
        )
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=400, check=True)
        assert ended.stdout == "2 False\n"

    def test_the_checks_are_listed(self) -> None:
        listed = run("validate", "--tokens", "--list", columns=200).output
        assert all(name in listed for name in (*ROW_CHECKS, *TEMPLATE_CHECKS))


def tiny_row(folder: Path) -> tuple[TokensEntry, Episode]:
    from rstar2_env.tools.cut import make_tokenizer

    codec = ChatCodec(make_tokenizer(str(folder)))  # type: ignore[arg-type]  # a tokenizer of transformers
    prompt, turn = codec.prompt("", "1 + 1"), codec.turn("2")
    episode = Episode(messages=[Message("user", "1 + 1"), Message("assistant", "2")], steps=[Turn(0, len(turn))])
    size = len(turn)
    return TokensEntry(1, 0, 0, prompt, turn, [1] * size, [-0.5] * size, [0.0] * size), episode


@pytest.mark.parametrize(
    ("title", "checks"), [("checks of rows", ROW_CHECKS), ("checks of a template", TEMPLATE_CHECKS)]
)
def test_the_page_lists_the_checks_by_their_severity(title: str, checks: Any) -> None:
    table = (
        (DOCS / "stored-episodes.md").read_text("utf-8").partition(f"| severity | {title} |\n")[2].partition("\n\n")[0]
    )
    told = {}
    for line in table.split("\n")[1:]:
        severity, names = line.strip("|").split("|")
        told[severity.strip()] = re.findall(r"`(\w+)`", names)
    assert told == {
        str(severity): [name for name, check in checks.items() if check.severity is severity] for severity in Severity
    }

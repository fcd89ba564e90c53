"""Claims about the forms of a subcommand, and about the names of the last version, which this version still accepts."""

from __future__ import annotations

import pytest
from cli_runner import run

from rstar2_env.cli import COMMANDS
from rstar2_env.cli._calls import FORMS, RENAMED, RENAMED_OPTIONS, read_call


@pytest.mark.parametrize(
    ("typed", "module", "arguments"),
    [
        ("export run --out m", "export", "export run --out m"),
        ("export --to verifiers --env ID --out m", "export_env", "export ID --to verifiers --out m"),
        ("export --env=ID --out m", "export_env", "export ID --out m"),
        ("export --env --help", "export_env", "export --help"),
        ("export run -- --env x", "export", "export run -- --env x"),
        ("verify 1/2 0.5", "verify", "verify 1/2 0.5"),
        ("verify --run RUN --json", "reverify", "verify RUN --json"),
        ("verify --episode 2/0/1 --json --run RUN", "replay", "verify RUN 2/0/1 --json"),
        ("validate --tokens RUN --json", "check_tokens", "validate RUN --json"),
        ("launch --timeout 3 -- grpo --wait-s 4", "launch", "launch --timeout 3 -- grpo --wait-s 4"),
    ],
)
def test_flags_select_the_form_of_a_subcommand(typed, module, arguments):
    call = read_call(typed.split())
    assert (call.module, " ".join(call.arguments), call.notes) == (module, arguments, ())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("trainers grpo_roc --json", "list trainers grpo_roc --json"),
        ("parts selector", "list parts selector"),
        ("agents", "list agents"),
        ("envs --no-sample rstar2/Game24-v0", "list envs --no-sample rstar2/Game24-v0"),
        ("wrappers", "list wrappers"),
        ("show FILE.jsonl 12 --no-pager", "view --text FILE.jsonl --episode 12 --no-pager"),
        ("show FILE.jsonl.gz", "view --text FILE.jsonl.gz"),
        ("replay --json RUN 12", "verify --json --run RUN --episode 12"),
        ("replay --run RUN --episode 12", "verify --run RUN --episode 12"),
        ("replay RUN --json --episode=12", "verify --json --run RUN --episode 12"),
        ("replay --episode 12 RUN", "verify --run RUN --episode 12"),
        ("replay 12 --run RUN", "verify --run RUN --episode 12"),
        ("reverify --run RUN --json", "verify --json --run RUN"),
        ("export-env --env ID --to verifiers", "export --env ID --to verifiers"),
        ("serve-env --env=ID", "serve --env ID"),
        ("check-tokens --step 3 --tokens RUN", "validate --tokens RUN --step 3"),
        ("show FILE.jsonl --episode 12 --json", "view --text FILE.jsonl --episode 12 --json"),
        ("show FILE.jsonl --sort=reward 12", "view --text FILE.jsonl --sort=reward --episode 12"),
        ("show FILE.jsonl --no-pager 12", "view --text FILE.jsonl --no-pager --episode 12"),
        ("reverify --out x --verifier rules RUN", "verify --out x --verifier rules --run RUN"),
        ("export-env --to verifiers ID --out x", "export --to verifiers --env ID --out x"),
        ("serve-env ID --idle 5", "serve --env ID --timeout 5"),
        ("check-tokens RUN --step 3", "validate --tokens RUN --step 3"),
        ("eval ID -n 2 --n 16", "eval ID -n 2 --samples 16"),
        ("compare a b --png=c.png", "compare a b --report=c.png"),
        ("validate ID --level 3 --html page.html", "validate ID --level 3 --report page.html"),
        ("view runs --export page.html", "view runs --report page.html"),
        ("launch --serve 0 --wait-s 9 -- grpo", "launch --serve 0 --timeout 9 -- grpo"),
        ("audit a.py:grade --deadline 3 --html=a.html", "audit a.py:grade --grade-timeout 3 --report=a.html"),
        ("doctor --prove --minutes 2.5", "doctor --prove --timeout 150"),
        ("doctor --minutes=2", "doctor --timeout=120"),
        ("doctor --minutes many", "doctor --timeout many"),
        ("traces --token-budget 9 --episode-budget 3", "traces --max-total-tokens 9 --max-total-episodes 3"),
        ("sandbox serve --drain 1", "sandbox serve --drain-timeout 1"),
        ("sandbox run a.py --wall 2", "sandbox run a.py --timeout 2"),
        ("sandbox serve --max-wall 3 --judge-wall 4", "sandbox serve --max-timeout 3 --judge-timeout 4"),
    ],
)
def test_an_old_name_means_the_new_one(old, new):
    before, after = read_call(old.split()), read_call(new.split())
    assert before.module == after.module
    moved = sorted(before.arguments), sorted(after.arguments)
    assert moved[0] == moved[1]  # options stay with their values; the arguments of a form may stand elsewhere
    if before.module == "replay":
        assert before.arguments.index("RUN") < before.arguments.index("12")
    assert before.notes
    assert after.notes == ()


def test_every_old_name_has_a_new_one_and_is_not_listed():
    assert RENAMED.keys().isdisjoint(COMMANDS)
    assert {new.split()[0] for new, _ in RENAMED.values()} | FORMS.keys() <= COMMANDS.keys()
    assert {command.split()[0] for command in RENAMED_OPTIONS} <= COMMANDS.keys()
    shown = run("--help").output
    assert all(f"│ {name} " not in shown for name in RENAMED)


def test_an_old_name_still_works_and_prints_one_line_that_names_the_new_one():
    old, new = run("parts", "advantage", "--json"), run("list", "parts", "advantage", "--json")
    assert (old.exit_code, old.stdout) == (0, new.stdout)
    assert old.stderr == ("Note: `rstar2 parts` is now `rstar2 list parts`. The next version removes the old name.\n")
    assert new.stderr == ""


def test_one_entry_of_each_kind_is_shown_in_full():
    shown = run("list", "wrappers", "tool_budget").output
    assert shown.startswith("tool_budget\n")
    assert "Args:" in shown
    assert "Options: calls" in shown
    assert "fault_injection" not in shown
    assert run("list", "agents", "oracle").output.startswith("oracle\n")
    wrong = run("list", "wrappers", "tool_bugdet")
    assert wrong.exit_code == 2
    assert "Did you mean 'tool_budget'?" in wrong.stderr

"""The changes that a finding names are accepted: options by the trainer, commands by the command line."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest
from cli_runner import run
from diagnosed import SINCE, clean
from typer.main import get_command

from rstar2_env.cli import COMMANDS, build
from rstar2_env.diagnosis.base import CHECKS
from rstar2_env.diagnosis.examination import every_check, examine
from rstar2_env.diagnosis.foreign_changes import OPTIONS as OPTIONS_OF_OTHERS
from rstar2_env.diagnosis.foreign_changes import translated
from rstar2_env.diagnosis.record import RunRecord, StepData
from rstar2_env.diagnosis.typed_changes import typed

VALUES = {"MORE": "9000", "FEWER": "4", "LESS": "16", "HIGHER": "2.0", "LOWER": "1e-7", "SEED": "1"}
"""A value for each word that stands for one, if the run's own value is unknown."""
OTHERS = ("data.max_prompt_length=HIGHER (verl)",)
"""Options of other trainers."""
CHANGES = sorted({change for check in every_check() for change in check.change} - set(OTHERS))
OPTIONS = [change for change in CHANGES if change.startswith("--set ")]
PLAN = ("plan", "--model", "qwen3-14b", "--gpus", "64", "--gpu", "MI300X")


def words(change: str) -> list[str]:
    return [re.sub(r"=([A-Z]+)$", lambda found: f"={VALUES[found[1]]}", word) for word in shlex.split(change)]


@pytest.mark.parametrize(
    "change", [change for change in OPTIONS if "judge=" not in change and "begin_from" not in change]
)
def test_an_option_to_change_is_an_option_with_such_a_value(change: str) -> None:
    done = run(*PLAN, *words(change))
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("change", [change for change in CHANGES if change.startswith("rstar2 ")])
def test_a_command_to_run_is_a_command_with_these_options(change: str) -> None:
    name, *rest = shlex.split(change)[1:]
    assert name in COMMANDS
    command = get_command(build([name, *rest])).commands[name]
    command = getattr(command, "commands", {}).get(rest[0] if rest else "", command)
    flags = {flag for parameter in command.params for flag in parameter.opts}
    given = {word for word in rest if word.startswith("--")}
    assert given - {"--tokens"} <= flags
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    assert [parameter.name for parameter in options if parameter.required and not given & {*parameter.opts}] == []


def test_every_change_is_an_option_a_command_or_of_another_trainer() -> None:
    assert [change for change in CHANGES if not change.startswith(("--", "rstar2 "))] == []


@pytest.mark.parametrize(
    ("change", "others"),
    [
        (
            "--set optim.learning_rate=LOWER",
            ("learning_rate=LOWER (TRL)", "actor_rollout_ref.actor.optim.lr=LOWER (verl)"),
        ),
        (
            "--set loss.ppo_clip.low=0.2 --set loss.ppo_clip.high=0.28",
            (
                "epsilon=0.2 epsilon_high=0.28 (TRL)",
                "actor_rollout_ref.actor.clip_ratio_low=0.2 actor_rollout_ref.actor.clip_ratio_high=0.28 (verl)",
            ),
        ),
        ("--set rollout.top_p=1 --set rollout.top_k=0", ()),
        ("--set selector=roc", ()),
        ("--resume", ()),
        ("rstar2 validate --tokens RUN", ()),
        ("rstar2 doctor", ()),
        ("--problems EASIER", ("train_dataset=EASIER (TRL)", "data.train_files=EASIER (verl)")),
        (OTHERS[0], OTHERS),
    ],
)
def test_for_another_trainer_a_change_is_its_own_option(change, others) -> None:
    assert translated([change], Path("log.jsonl")) == others
    of_trl = tuple(one for one in others if not one.endswith("(verl)"))
    assert translated([change], Path("trainer_state.json")) == of_trl


def test_the_options_of_trl_exist() -> None:
    files = (
        ("trl", "trainer/grpo_config.py"),
        ("trl", "trainer/grpo_trainer.py"),
        ("transformers", "training_args.py"),
    )
    found = [find_spec(package) for package, _ in files]
    if not all(found):
        pytest.skip("TRL is not installed")
    texts = [
        (Path(str(one.origin)).parent / file).read_text("utf-8")
        for one, (_, file) in zip(found, files, strict=True)
        if one is not None
    ]
    known = {name for text in texts for name in re.findall(r"^ {4,8}(\w+): ", text, re.MULTILINE)}
    assert {of_trl for of_trl, _ in OPTIONS_OF_OTHERS.values()} <= known


def test_every_option_with_a_counterpart_is_one_that_a_check_changes() -> None:
    changed = {word.partition("=")[0] for change in OPTIONS for word in shlex.split(change)}
    changed |= {"problems"} if any(change.startswith("--problems ") for change in CHANGES) else set()
    assert set(OPTIONS_OF_OTHERS) <= changed


RUN = RunRecord(
    "run",
    config={
        "optim": {"learning_rate": 1e-5, "max_grad_norm": None},
        "rollout": {
            "max_in_flight": 5,
            "max_episode_tokens": 1_000_001,
            "env": "own/Env-v0",
            "env_options": {"max_turns": 3},
        },
        "run": {"seed": 0},
        "eval": {"env_options": {"problems": "held out.jsonl"}},
        "model": {"path": "models/a b"},
        "parts": {
            "loss": [{"name": "ppo_clip", "low": 0.2, "high": 0.28}, {"name": "entropy", "coef": 0.0}],
            "selector": {"name": "all", "mode": "sample"},
            "rollout": {"name": "plain"},
            "hook": [],
        },
    },
    steps=[StepData(1, {"learning_rate": 3e-4})],
)


@pytest.mark.parametrize(
    ("change", "with_value"),
    [
        ("--set optim.learning_rate=LOWER", "--set optim.learning_rate=1e-06"),
        ("--set rollout.max_in_flight=FEWER", "--set rollout.max_in_flight=2"),
        ("--set env.max_turns=MORE", "--set env.max_turns=6"),
        ("--set optim.max_grad_norm=HIGHER", "--set optim.max_grad_norm=HIGHER"),
        ("--set run.seed=SEED", "--set run.seed=1"),
        ("--set rollout.max_episode_tokens=MORE", "--set rollout.max_episode_tokens=2000002"),
        ("--set optim.warmup_steps=10", "--set optim.warmup_steps=10"),
        ("data.max_prompt_length=HIGHER (verl)", "data.max_prompt_length=HIGHER (verl)"),
        ("rstar2 verify --run RUN", "rstar2 verify --run run"),
        ("--set optim.begin_from=RUN", "--set optim.begin_from=run"),
        ("rstar2 validate ENV --problems PROBLEMS", "rstar2 validate own/Env-v0 --problems PROBLEMS"),
        (
            "rstar2 problems decontaminate --against HELD_OUT",
            "rstar2 problems decontaminate --against 'held out.jsonl'",
        ),
        ("rstar2 sft --traces t.jsonl --model MODEL", "rstar2 sft --traces t.jsonl --model 'models/a b'"),
    ],
)
def test_a_word_becomes_a_value_if_the_run_has_recorded_its_own(change: str, with_value: str) -> None:
    assert typed([change], RUN) == (with_value,)


@pytest.mark.parametrize(
    "remedy",
    [
        "--set loss.ppo_clip.high=0.28",
        "--set loss.ppo_clip.high=.280",
        "--set loss=ppo_clip+entropy",
        "--set loss.entropy.coef=0",
        "--set selector=all",
        "--set selector.mode=sample",
        "--set run.seed=0",
        "--set selector=all --set run.seed=0",
        "--set env.max_turns=3",
        "--set parts.rollout=plain",
        "--set optim.max_grad_norm=null",
    ],
)
def test_a_remedy_that_the_run_already_follows_is_left_out(remedy: str) -> None:
    assert typed([remedy], RUN) == ()


@pytest.mark.parametrize(
    "remedy",
    [
        "--set loss.ppo_clip.high=0.3",
        "--set loss.kl.coef=0",
        "--set loss=ppo_clip",
        "--set selector=roc",
        "--set hook.guard.metric=kl",
        "--set selector=all --set run.seed=1",
        "--set run.seed=0 and a second seed",
        "--set sampler=uniform",
        "--set eval.temperature=null",
    ],
)
def test_a_remedy_that_changes_the_run_stays(remedy: str) -> None:
    assert typed([remedy], RUN) == (remedy,)


def test_a_learning_rate_that_no_option_sets_is_that_of_the_figures() -> None:
    run = RunRecord("run", steps=RUN.steps)
    assert typed(["--set optim.learning_rate=LOWER"], run) == ("--set optim.learning_rate=3e-05",)


def test_a_finding_names_values_of_its_run() -> None:
    run = clean(kl=lambda step: 0.1 * (step - SINCE + 4) ** 1.5, config={"optim": {"learning_rate": 1e-4}})
    (found,) = examine(run, checks=[CHECKS.get("kl_runs_away")])
    assert "--set optim.learning_rate=1e-05" in found.change

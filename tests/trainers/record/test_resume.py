"""Resuming: a checkpoint must be there and whole, the trainer and its options the same, and steps left to do."""

import json
import subprocess
import sys
from dataclasses import asdict

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import Part
from rstar2_env.trainers.base import TRAINERS
from rstar2_env.trainers.options.cold_start import SftOptions
from rstar2_env.trainers.record.checkpoints import mark_unfinished, mark_whole
from rstar2_env.trainers.record.resume import MAY_CHANGE, checkpoint_to_resume

BEGAN = {
    "trainer": "grpo",
    "run": {"output_dir": "a", "steps": 10, "seed": 0, "progress": True, "report_to": []},
    "model": {"path": "m", "lora_rank": 0},
    "rollout": {"group_size": 8, "env_options": {}, "engine_options": {"base_urls": ["http://one"]}},
    "optim": {"learning_rate": 1e-6},
}


@pytest.fixture
def run(tmp_path):
    """The folder of a run that was stopped after 4 of 10 steps."""
    folder = tmp_path / "run"
    for step in (2, 4):
        (folder / f"checkpoint-{step}").mkdir(parents=True)
        mark_whole(folder / f"checkpoint-{step}", 1)
    (folder / "config.json").write_text(json.dumps(BEGAN))
    return folder


def changed(**groups):
    return {**BEGAN, **{name: {**BEGAN[name], **options} for name, options in groups.items()}}


def test_a_run_goes_on_from_its_newest_whole_checkpoint(run):
    assert checkpoint_to_resume(run, BEGAN, steps=10) == run / "checkpoint-4"
    mark_unfinished(run / "checkpoint-4")
    assert checkpoint_to_resume(run, BEGAN, steps=10) == run / "checkpoint-2"


def test_a_folder_that_is_mistyped_is_refused_and_the_near_one_named(run):
    with pytest.raises(ConfigurationError, match=r"The folder .*/rum does not exist.*Did you mean .*/run\?"):
        checkpoint_to_resume(run.with_name("rum"), BEGAN, steps=10)


def test_a_folder_without_a_whole_checkpoint_is_refused(run, tmp_path):
    for step in (2, 4):
        mark_unfinished(run / f"checkpoint-{step}")
    with pytest.raises(ConfigurationError, match="does not hold a finished checkpoint"):
        checkpoint_to_resume(run, BEGAN, steps=10)
    with pytest.raises(ConfigurationError, match=r"There is one in .*/run"):
        checkpoint_to_resume(tmp_path, BEGAN, steps=10)


def test_another_trainer_and_other_options_are_refused_by_name(run):
    other = {**changed(rollout={"group_size": 4, "env_options": {"max_turns": 3}}), "trainer": "rloo"}
    with pytest.raises(ConfigurationError, match="trainer 'grpo': resume it with this trainer instead of 'rloo'"):
        checkpoint_to_resume(run, other, steps=10)
    with pytest.raises(ConfigurationError) as caught:
        checkpoint_to_resume(run, {**other, "trainer": "grpo"}, steps=10)
    message = str(caught.value)
    assert "rollout.group_size was 8 and is 4" in message
    assert "rollout.env_options.max_turns was absent and is 3" in message
    assert "learning_rate" not in message
    assert ", ".join(MAY_CHANGE) in message


@pytest.mark.parametrize(
    "options",
    [
        {"run": {"steps": 20, "resume": True, "output_dir": "moved/there", "progress": False, "report_to": ["wandb"]}},
        {"rollout": {"engine_options": {"base_urls": ["http://two"], "start_timeout_s": 5}}},
        {"optim": {"tokens_per_device": 4096}},
    ],
)
def test_what_changes_nothing_that_is_learned_may_change(run, options):
    assert checkpoint_to_resume(run, changed(**options), steps=20) == run / "checkpoint-4"


def test_a_run_with_old_names_of_options_is_resumed(run):
    began = {**BEGAN, "rollout": {**BEGAN["rollout"], "env_options": {"verify_timeout": 3.0}}}
    (run / "config.json").write_text(json.dumps(began))
    now = changed(rollout={"env_options": {"verify_timeout_s": 3.0}})
    assert checkpoint_to_resume(run, now, steps=10) == run / "checkpoint-4"
    other = changed(rollout={"env_options": {"verify_timeout_s": 4.0}})
    with pytest.raises(ConfigurationError, match=r"verify_timeout_s was 3\.0 and is 4\.0"):
        checkpoint_to_resume(run, other, steps=10)


@pytest.mark.parametrize("steps", [4, 3])
def test_a_run_whose_steps_are_done_stops_at_once(run, steps):
    with pytest.raises(ConfigurationError, match=f"done 4 of {steps} steps, .*nothing is left"):
        checkpoint_to_resume(run, changed(run={"steps": steps}), steps=steps)


def test_a_run_that_does_not_say_what_it_began_with_is_refused(run):
    (run / "config.json").write_text("{")
    with pytest.raises(ConfigurationError, match=r"config\.json.*cannot be read"):
        checkpoint_to_resume(run, BEGAN, steps=10)
    (run / "config.json").unlink()
    with pytest.raises(ConfigurationError, match=r"config\.json.*cannot be read"):
        checkpoint_to_resume(run, BEGAN, steps=10)


@pytest.mark.parametrize(
    ("at", "resume", "said"), [("run", False, "holds files of yours"), ("rum", True, "Did you mean")]
)
def test_a_folder_that_does_not_fit_is_refused_before_torch_is_loaded(run, at, resume, said):
    code = f"""
import sys
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers import make
try:
    make("grpo", model=object(), output_dir={str(run.parent / at)!r}, resume={resume})
except ConfigurationError as error:
    print(error, "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said in done.stdout, done.stderr
    assert done.stdout.endswith("False\n")


RESUMED = """
import sys
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers import make
try:
    make("grpo", model=object(), output_dir={folder!r}, resume=True, **{options!r})
except ConfigurationError as error:
    print(error, "torch" in sys.modules)
"""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"group_size": 4}, "rollout.group_size was 8 and is 4"),
        ({"dtype": "bfloat16"}, 'model.dtype was "auto" and is "bfloat16"'),
        ({"steps": 4}, "nothing is left to do"),
    ],
)
def test_other_options_are_refused_before_torch_is_loaded(run, options, said):
    config = TRAINERS.get("grpo").configure({"model": object()})
    config.parts.correction = Part("none")  # which "auto" selected in the recorded run
    (run / "config.json").write_text(json.dumps({"trainer": "grpo", **config.record()}))
    code = RESUMED.format(folder=str(run), options=options)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said in done.stdout, done.stderr
    assert done.stdout.endswith("False\n")


def test_a_folder_with_a_link_that_leads_out_of_it_is_refused(run, tmp_path):
    (run / "within.jsonl").symlink_to(run / "config.json")
    assert checkpoint_to_resume(run, BEGAN, steps=10)
    (tmp_path / "mine").mkdir()
    (run / "checkpoint-2" / "final").symlink_to(tmp_path / "mine")
    with pytest.raises(ConfigurationError, match=r"checkpoint-2/final is a link to .*/mine, outside of the run's"):
        checkpoint_to_resume(run, BEGAN, steps=10)


TRACE = {"messages": [{"role": "user", "content": "2+2"}, {"role": "assistant", "content": "4"}]}


def test_other_options_of_a_cold_start_are_refused_before_torch_is_loaded(run, tiny_model):
    options = SftOptions(model=str(tiny_model))
    (run / "sft.json").write_text(json.dumps(asdict(options)))
    code = f"""
import sys
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers import sft
try:
    sft([{TRACE}], model={str(tiny_model)!r}, output_dir={str(run)!r}, resume=True, batch_size=2)
except ConfigurationError as error:
    print(error, "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "batch_size was 64 and is 2" in done.stdout, done.stderr
    assert done.stdout.endswith("False\n")


def test_checking_needs_no_torch():
    program = "import sys, rstar2_env.trainers.record.resume; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0

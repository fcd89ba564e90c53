"""Training on two processes: groups stay whole, the processes agree, one that is gone ends the other with an error."""

import gzip
import json
import os
import signal
from contextlib import closing

import pytest
from curves import CLOSE, apart, curve, differing
from places import SUPPORT
from torch_launcher import end, launch, ranks

from rstar2_env import trainers
from rstar2_env.core.run_folder import read_run

pytestmark = [pytest.mark.train, pytest.mark.slow]

SCRIPT = """
import itertools, json, os, signal, sys
from letter_env import LetterEnv
from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError

RANK = int(os.environ["RANK"])
steps = itertools.count()

class OneIsOdd(LetterEnv):
    # uneven: on the second process, episodes have four turns, and no group has a difference to learn from.
    # signal: the second process sends it to itself in its twentieth step.
    def __init__(self, split="train", uneven=False, signal=0):
        super().__init__(**({"turns": 4, "reward": 0.5} if uneven and RANK == 1 else {}))
        self.signal = signal if RANK == 1 else 0

    def step(self, action):
        if next(steps) == 19 and self.signal:
            os.kill(os.getpid(), self.signal)
        return super().step(action)

def tell(name, said):
    # In one piece: unbuffered, print writes several, and those of two processes would mix.
    sys.stdout.write("RESULT " + json.dumps([name, RANK, said]) + "\\n")
    sys.stdout.flush()

for name, options in json.loads(sys.argv[1]).items():
    try:
        trainer = trainers.make("grpo_roc", **{"env": OneIsOdd, **options})
    except ConfigurationError as error:
        tell(name, str(error))
        continue
    result = trainer.train()
    trainer.close()
    kinds = {type(weights).__name__ for weights in trainer.trl.model.parameters()}
    whole = [getattr(one, "full_tensor", lambda: one)() for one in trainer.trl.model.state_dict().values()]
    norm = sum(float(weights.abs().sum()) for weights in whole)
    after = result.after and result.after["pass_rate"]
    tell(name, {"pass": after, "norm": norm, "parts": [*kinds]})
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SUPPORT)}
GONE = {signal.SIGKILL: "by peer", signal.SIGSTOP: "Timed out waiting"}
"""How the second process goes, and what the first then says."""


ONE_EPISODE: dict = {"eval": {"every": 1, "episodes": 1}}
"""Of two processes, one plays and the other has nothing to do."""
ALONG: dict = {
    "env": f"{SUPPORT / 'letter_env.py'}:AskedAgain",
    "steps": 3,
    "max_episode_tokens": 200,
    "keep_tokens": True,
    "eval": {"every": 0},
}
"""Of a run that is compared with that of one process; episodes of one group differ in length, or the loss is 0."""


def options_of(folder, tiny_model, **changes):
    return {
        "model": str(tiny_model),
        "output_dir": str(folder),
        "steps": 2,
        "problems_per_step": 4,
        "group_size": 4,
        "tokens_per_device": 8 * 16,
        "learning_rate": 1e-2,
        "max_episode_tokens": 16,
        "max_turn_tokens": 2,
        "eval": {"every": 1, "episodes": 7},
        "threads": 1,
        "progress": False,
        **changes,
    }


def script_in(folder):
    script = folder / "script.py"
    script.write_text(SCRIPT)
    return script


@pytest.fixture(scope="module")
def runs(tmp_path_factory, tiny_model):
    """Three runs, one after the other, on the same two processes: their folder, and what each process told of each."""
    folder = tmp_path_factory.mktemp("two")
    named = {
        "refused": {"problems_per_step": 3},
        "even": {},
        "sharded": {"sharding": "fsdp2", "env_options": {"uneven": True}, "max_episode_tokens": 200} | ONE_EPISODE,
        "uneven": {"env_options": {"uneven": True}, "max_episode_tokens": 200},
        "along": {"sharding": "fsdp2", **ALONG},
    }
    options = {name: options_of(folder / name, tiny_model, **changes) for name, changes in named.items()}
    stdout = launch(script_in(folder), json.dumps(options), torchrun=True)
    told = [json.loads(line.partition("RESULT ")[2]) for line in stdout.splitlines() if "RESULT " in line]
    return folder, {name: [said for _, said in sorted(t[1:] for t in told if t[0] == name)] for name in named}


def episodes_of(folder, step):
    """What each of the two processes played in a step."""
    for rank in ("", "-rank1"):
        with gzip.open(folder / "episodes" / f"train-{step:06d}{rank}.jsonl.gz", "rt") as file:
            yield [json.loads(line) for line in file]


def test_two_processes_train_whole_groups_and_agree(runs):
    folder, told = runs
    one, other = told["even"]
    assert one == other
    played = list(episodes_of(folder / "even", 1))
    assert [len(episodes) for episodes in played] == [2 * 8, 2 * 8]
    assert [{episode["group"] for episode in episodes} for episodes in played] == [{0, 1}, {2, 3}]


def test_a_step_that_would_split_a_group_is_refused(runs):
    _, told = runs
    assert len(told["refused"]) == 2
    assert all("use a multiple of 2" in said for said in told["refused"])


def test_processes_whose_episodes_differ_in_turns_and_whose_groups_are_rejected_go_on(runs):
    folder, told = runs
    one, other = told["uneven"]
    assert one == other
    steps = [list(episodes_of(folder / "uneven", step)) for step in (1, 2)]
    for played in steps:
        assert [{episode["turns"] for episode in episodes} for episodes in played] == [{1}, {4}]
        assert not any(episode["kept"] for episode in played[1]), "nothing of the second process trains"
    assert any(episode["kept"] for played in steps for episode in played[0])


def test_with_sharded_weights_processes_may_play_different_numbers_of_turns_and_of_episodes(runs):
    folder, told = runs
    one, other = told["sharded"]
    assert one == other
    assert set(one["parts"]) == {"DTensor"}
    played = list(episodes_of(folder / "sharded", 1))
    assert [{episode["turns"] for episode in episodes} for episodes in played] == [{1}, {4}]


@pytest.fixture(scope="module")
def alone(tmp_path_factory, tiny_model):
    """The run of one process with the options of those that are compared with it."""
    folder = tmp_path_factory.mktemp("alone")
    with closing(trainers.make("grpo_roc", **options_of(folder / "run", tiny_model, **ALONG))) as one:
        one.train()
    return read_run(folder / "run")


def test_two_sharded_processes_play_the_episodes_of_one_and_train_along_its_curve(runs, alone):
    folder, _ = runs
    run = read_run(folder / "along")
    assert not differing(run, alone)
    assert apart(run, alone) < CLOSE
    assert min(map(abs, [*curve(alone, "loss"), *curve(alone, "grad_norm")])) > 1e-3, "nothing to compare"


@pytest.fixture(scope="module")
def left(tmp_path_factory, tiny_model):
    """How the first process ends when the second is gone, and its log. Both ways at once: most of it is waiting.

    Without torchrun, which ends what is left on its own machine: on another machine it cannot.
    """
    started, logs = {}, {}
    try:
        for how in GONE:
            logs[how] = tmp_path_factory.mktemp(how.name)
            changes = {"env_options": {"signal": int(how)}, "eval": {"every": 0}, "process_timeout_s": 15}
            options = {"gone": options_of(logs[how] / "run", tiny_model, **changes)}
            words = [str(script_in(logs[how])), json.dumps(options)]
            started[how] = ranks(words, 2, ENVIRONMENT, logs=logs[how])
        return {how: (started[how][0].wait(400), (log / "0.log").read_text()) for how, log in logs.items()}
    finally:
        end([process for pair in started.values() for process in pair])


@pytest.mark.parametrize(("how", "says"), GONE.items(), ids=["killed", "stopped"])
def test_a_process_that_is_gone_ends_the_other_with_an_error(left, how, says):
    code, log = left[how]
    assert code == 1
    assert says in log

"""A run that is killed and resumed: the curve of the run that was not, with a sampler that learns from what it saw."""

import json
import os
import signal

import prepared
import pytest
from places import SUPPORT

from rstar2_env.core.run_folder import read_run

pytestmark = [pytest.mark.train, pytest.mark.slow]

SCRIPT = """
import itertools, json, os, signal, sys
from letter_env import LetterEnv
from rstar2_env import trainers
from rstar2_env.trainers.samplers.base import SAMPLERS, Start

class Learning:
    # Where a group starts depends on all rewards so far.
    def __init__(self, ids=None, seed=0):
        self.drawn, self.earned = 0, 0.0

    def draw(self, n):
        self.drawn += n
        return [Start(int(1000 * self.earned) + self.drawn - at) for at in range(n)]

    def observe(self, outcomes):
        self.earned += sum(one.reward for one in outcomes)

    def state_dict(self):
        return {"drawn": self.drawn, "earned": self.earned}

    def load_state_dict(self, state):
        self.drawn, self.earned = state["drawn"], state["earned"]

options = json.loads(sys.argv[1])
dies = options.pop("dies")
steps = itertools.count(1)

class Dying(LetterEnv):
    def step(self, action):
        if next(steps) == dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)

SAMPLERS.register("learning", Learning)
trainer = trainers.make("grpo_roc", env=Dying, **options)
trainer.train()
trainer.close()
"""


@pytest.fixture
def run(tmp_path, tiny_model):
    (tmp_path / "script.py").write_text(SCRIPT)

    def started(folder, dies=0, **changes):
        options = {
            "model": str(tiny_model),
            "output_dir": str(tmp_path / folder),
            "steps": 8,
            "problems_per_step": 4,
            "group_size": 4,
            "tokens_per_device": 256,
            "learning_rate": 3e-3,
            "max_episode_tokens": 16,
            "max_turn_tokens": 2,
            "updates_per_rollout": 2,
            "save_every": 3,
            "sampler": "learning",
            "threads": 1,
            "progress": False,
            "dies": dies,
            **changes,
        }
        environment = {**os.environ, "PYTHONPATH": str(SUPPORT), "OMP_NUM_THREADS": "1"}
        words = [str(tmp_path / "script.py"), json.dumps(options)]
        done = prepared.run(words, env=environment, timeout=800)
        return done, read_run(tmp_path / folder)

    return started


def curve(read):
    """Metrics of each step, but for those of time, of memory, and of which requests were computed together."""
    other = ("seconds/", "speed/", "engine/", "memory/")
    return {line["step"]: {name: line[name] for name in line if not name.startswith(other)} for line in read.metrics()}


def test_a_killed_run_goes_on_along_the_same_curve(run):
    done, whole = run("whole")
    assert done.returncode == 0, done.stderr[-2000:]
    # In the third rollout of 32 episodes, which is step 5; the last checkpoint stands in the middle of the second.
    killed, broken = run("broken", dies=2 * 32 + 20)
    assert killed.returncode == -signal.SIGKILL
    assert [one.path.name for one in broken.checkpoints] == ["checkpoint-3"]
    assert max(line["step"] for line in broken.metrics()) == 4
    resumed, again = run("broken", resume=True)
    assert resumed.returncode == 0, resumed.stderr[-2000:]
    expected, found = curve(whole), curve(again)
    assert list(found) == list(expected) == list(range(1, 9))
    for step, figures in expected.items():
        assert set(found[step]) == set(figures)
        assert found[step] == pytest.approx(figures, rel=1e-4, abs=1e-6, nan_ok=True), step
    for step in (1, 3, 5, 7):
        ones = [[entry.episode.record()["messages"] for entry in group] for group in again.groups(step)]
        assert ones == [[entry.episode.record()["messages"] for entry in group] for group in whole.groups(step)]

"""The ranks of the collecting thread: what they gather, and how a process ends in which they wait in vain."""

import os

import pytest
from torch_launcher import end, ranks

pytestmark = [pytest.mark.train, pytest.mark.slow]

SCRIPT = """
import sys, threading, time
from pathlib import Path
import numpy as np
from rstar2_env.trainers.backends.trl.model import processes
from rstar2_env.trainers.backends.trl.ranks import OwnRanks

left = Path(sys.argv[1])
ranks = OwnRanks(processes(), timeout_s=60)
gathered = ranks.gather({"rank": ranks.rank, "text": "x" * (1 + 1000 * ranks.rank)})
total = ranks.sum(np.array([1.0, ranks.rank])).tolist()
print([(one["rank"], len(one["text"])) for one in gathered], total, flush=True)
if ranks.rank == 1:
    while not left.exists():
        time.sleep(0.01)
    sys.exit(0)
waiting = threading.Thread(target=ranks.gather, args=("in vain",), daemon=True)
waiting.start()
waiting.join(0.3)
assert waiting.is_alive()
left.touch()
sys.exit(3)
"""


def test_a_thread_that_waits_in_vain_does_not_abort_its_process(tmp_path):
    started = ranks(["-c", SCRIPT, str(tmp_path / "left")], 2, os.environ)
    try:
        (told, errors), (other, _) = (one.communicate(timeout=200) for one in started)
    finally:
        end(started)
    assert told == other == "[(0, 1), (1, 1001)] [2.0, 1.0]\n", errors[-2000:]
    assert "terminate called" not in errors
    assert started[0].returncode == 3, errors[-2000:]

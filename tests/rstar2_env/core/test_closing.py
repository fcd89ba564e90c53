"""Claims about the release of memory."""

import gc
import weakref
from pathlib import Path

from rstar2_env.core.closing import release_memory


class Cyclic:
    def __init__(self) -> None:
        self.itself = self


def test_objects_that_refer_to_each_other_are_released():
    gc.disable()
    try:
        alive = weakref.ref(Cyclic())
        assert alive() is not None
        release_memory()
        assert alive() is None
    finally:
        gc.enable()


def test_freed_memory_goes_back_to_the_system():
    blocks = [bytearray(60_000) for _ in range(4000)]  # too small for pages of their own
    last = bytearray(60_000)  # keeps the heap from shrinking by itself
    full = _resident()
    del blocks
    release_memory()
    assert full - _resident() > 150_000_000
    del last


def _resident() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

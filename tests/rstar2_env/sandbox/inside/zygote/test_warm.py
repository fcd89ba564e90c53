"""A prepared interpreter passes its memory on to forks without a page fault for each page of code."""

from __future__ import annotations

import subprocess
import sys

INHERITED_CODE = """
import os
from rstar2_env.sandbox.inside.zygote import warm

def mapped_kb():
    kb, counts, starts = 0, False, {f"{start:x}-{end:x}" for start, end in warm.code_spans()}
    for line in open("/proc/self/smaps"):
        words = line.split()
        if "-" in words[0]:
            counts = words[0] in starts
        elif counts and words[0] == "Rss:":
            kb += int(words[1])
    return kb

mapped_kb()
if PREPARED:
    warm.inherit_code_pages()
before = mapped_kb()
if os.fork() == 0:
    print(mapped_kb() / before, flush=True)
    os._exit(0)
os.wait()
"""


def last_line(script: str) -> str:
    """Run a script in a fresh interpreter, and return the last line that it prints."""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    return run.stdout.splitlines()[-1]


def test_forks_inherit_the_code_that_is_mapped() -> None:
    assert float(last_line(INHERITED_CODE.replace("PREPARED", "True"))) > 0.99
    assert float(last_line(INHERITED_CODE.replace("PREPARED", "False"))) < 0.95


def test_the_code_is_not_writable_afterwards() -> None:
    script = (
        "from rstar2_env.sandbox.inside.zygote import warm\nbefore = warm.code_spans()\nwarm.inherit_code_pages()\n"
    )
    assert last_line(f"{script}print(len(before) > 0 and warm.code_spans() == before)") == "True"

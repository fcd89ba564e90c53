"""Claims about docs/wrappers.md: its examples run, one after the other, and it names every wrapper and fault."""

import re

from places import DOCS

import rstar2_env.wrappers
from rstar2_env.wrappers import Fault
from rstar2_env.wrappers.base import TextWrapper

TEXT = (DOCS / "wrappers.md").read_text("utf-8")


def test_the_examples_of_the_page_run():
    names = {}
    for number, example in enumerate(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL), 1):
        exec(compile(example, f"wrappers.md, example {number}", "exec"), names)
    assert len(names["finished"]) == 2
    assert len(names["texts"]) == 4


def test_the_page_names_every_wrapper_and_every_fault():
    parts = [getattr(rstar2_env.wrappers, name) for name in rstar2_env.wrappers.__all__]
    wrappers = {part.__name__ for part in parts if isinstance(part, type) and issubclass(part, TextWrapper)}
    assert wrappers == set(re.findall(r"^\| `(\w+)\(env", TEXT, re.MULTILINE))
    assert set(Fault) <= set(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE))

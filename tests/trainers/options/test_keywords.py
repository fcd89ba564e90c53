"""Claims about the typed options of ``make`` and ``sft``: the file is the generator's output, and knows each option."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest
from places import ROOT

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers import SftKeywords, TrainKeywords, find_recipe
from rstar2_env.trainers.options.config import GROUPS
from rstar2_env.trainers.options.names import in_groups, known_names

FILE = ROOT / "trainers" / "options" / "keywords.py"


def test_the_file_is_what_the_generator_writes():
    found = importlib.util.spec_from_file_location("typed_options", ROOT / "tools" / "typed_options.py")
    tool = importlib.util.module_from_spec(found)
    found.loader.exec_module(tool)
    formatted = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--config", ROOT / "pyproject.toml", "-"],
        input=tool.written(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert FILE.read_text() == formatted, "run `python tools/typed_options.py > trainers/options/keywords.py`"


@pytest.mark.parametrize("name", sorted(set(TrainKeywords.__annotations__) - set(GROUPS)))
def test_each_short_name_has_its_group(name):
    ((group, options),) = in_groups({name: "x"}).items()
    assert list(options) == [name]
    assert name in known_names()[group]


def test_a_name_that_the_type_lacks_is_refused_at_run_time_too():
    assert "modle" not in TrainKeywords.__annotations__
    with pytest.raises(ConfigurationError, match="Did you mean"):
        find_recipe("grpo")[0].configure({"model": "m", "modle": "m"})


def test_each_option_of_sft_is_typed():
    from dataclasses import fields

    from rstar2_env.trainers import SftOptions

    assert list(SftKeywords.__annotations__) == [one.name for one in fields(SftOptions)]

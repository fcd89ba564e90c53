"""The tables of training options in docs/options.md are generated from the code."""

import dataclasses
import re

from options_table import BEGIN, with_table
from places import DOCS

from rstar2_env.trainers.options.config import GROUPS


def test_the_table_of_training_options_is_that_of_the_code():

    page = (DOCS / "options.md").read_text("utf-8")
    fresh = with_table(page)
    assert page == fresh, "run: python tools/docs_site/options_table.py docs/options.md"
    names = [f"{group}.{field.name}" for group, record in GROUPS.items() for field in dataclasses.fields(record)]
    assert re.findall(r"^\| `(\w+\.\w+)` \|", fresh.partition(BEGIN)[2], re.MULTILINE) == names

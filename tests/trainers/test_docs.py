"""The page on how a step is collected says what the code does."""

from __future__ import annotations

import re

from places import DOCS, ROOT

from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.options.files import read_config
from rstar2_env.trainers.options.parts import make_parts

PAGE = (DOCS / "trainers.md").read_text()


def table(after):
    """The cells of the first table after a text."""
    lines = PAGE.split(after, 1)[1].split("\n\n")
    rows = next(part for part in lines if part.lstrip().startswith("|")).strip().splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_every_reason_that_the_code_gives_is_explained():
    words = {word.strip("` ") for row in table("share of all episodes:") for word in row[0].split(",")}
    code = "".join(path.read_text() for path in (ROOT / "trainers/step").glob("s*.py"))
    code += "".join(path.read_text() for path in (ROOT / "trainers/selectors").glob("*.py"))
    code += "".join(
        (ROOT / name).read_text() for name in ("trainers/step/collector.py", "rstar2_env/rewards/scoring.py")
    )
    assert {word for word in words if f'"{word}"' not in code} == set()
    told = set(
        re.findall(
            r'"(quota|penalty|order|draw|equal|rejected|unselected|no_tokens|alone|surplus|band|deviation|few|tail|cancelled)"',
            code,
        )
    )
    assert told == words - {"unavailable"}


def test_the_rewards_of_the_page_are_read(tmp_path):
    (tmp_path / "run.toml").write_text(PAGE.split("```toml\n")[1].split("```")[0])
    config = TRAINERS.get("grpo_clip_higher").configure({"model": "m"}, read_config(tmp_path / "run.toml"))
    components = make_parts(config, shares_weights=True).rewards
    assert [(one.name, one.weight, one.gate) for one in components] == [
        ("return", 1.0, "always"),
        ("overlong", 0.5, "always"),
        ("answer_format", 0.1, "wrong"),
    ]

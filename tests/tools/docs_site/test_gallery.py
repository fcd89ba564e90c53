"""The gallery shows every registered part with what it is, every status and every end."""

import re
from typing import get_args

import gallery
import pytest

from rstar2_env.core.episode import Episode, ReplyEnd
from rstar2_env.core.status import ToolStatus

PAGES = gallery.pages()
# Before any test runs: other tests register parts of their own.
NAMES = {family.file: family.parts().names() for family in gallery.FAMILIES}


@pytest.mark.parametrize("family", gallery.FAMILIES, ids=lambda family: family.file)
def test_every_part_has_a_section_that_says_what_it_is(family):
    page = PAGES[f"gallery/{family.file}"]
    sections = dict(re.findall(r"^## `([^`]+)`\n\n(.*?)(?=^## `|\Z)", page, re.MULTILINE | re.DOTALL))
    assert list(sections) == NAMES[family.file]
    assert [name for name, text in sections.items() if len(text.split("\n")[0].split()) < 3] == []


@pytest.mark.parametrize(("page", "names"), [("statuses", list(map(str, ToolStatus))), ("ends", list(gallery.ENDS))])
def test_every_status_and_end_has_a_row_and_a_section(page, names):
    text = PAGES[f"gallery/{page}.md"]
    rows = re.findall(r"^\| \[`(\w+)`\]\(#(\w+)\) \| [^|]+ \| [^|]+ \| [^|]+ \|$", text, re.MULTILINE)
    sections = re.findall(r"^## `(\w+)`\n\n\w.+\.\n\n- \*\*\w", text, re.MULTILINE)
    assert rows == [(name, name) for name in names]
    assert sections == names


def test_every_end_that_the_record_names_is_explained():
    named = set(re.findall(r"``([a-z_]+)``", Episode.__doc__.partition("end: ")[2].partition("turns:")[0]))
    assert named | set(get_args(ReplyEnd)) == set(gallery.ENDS)


def test_the_text_below_a_member_is_read(tmp_path):
    file = tmp_path / "kinds.py"
    file.write_text('class Kind:\n    A = 1\n    """One.\n    More."""\n    B = 2\n')
    assert gallery.documented_members(file, "Kind") == {"A": "One. More."}

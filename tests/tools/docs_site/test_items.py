"""Each recipe, part, environment, status, metric, check, option, command and kind of error has a page of its own."""

import dataclasses
import re
from pathlib import PurePosixPath

import gallery
import items
import pytest
import reference
from part_pages import FAMILIES, RECIPES
from places import DOCS, ROOT

from rstar2_env.cli import COMMANDS
from rstar2_env.core.status import ToolStatus
from rstar2_env.diagnosis.base import CHECKS
from rstar2_env.diagnosis.metric_table import METRICS
from rstar2_env.trainers.options.config import GROUPS

MADE = {**gallery.pages(), **reference.pages()}
TEXTS = {
    place: kind.prepare(MADE.get(place) or (DOCS / place).read_text("utf-8")) for place, kind in items.KINDS.items()
}
SPLIT = {place: items.split(place, text) for place, text in TEXTS.items()}


def headings(place):
    return [item.heading.replace("`", "") for item in SPLIT[place][1]]


def test_every_kind_that_the_site_has_is_split():
    assert {f"trainers/{family.file}" for family in FAMILIES} | {f"trainers/{RECIPES}"} < items.KINDS.keys()
    assert gallery.pages().keys() < items.KINDS.keys()
    assert headings("gallery/statuses.md") == list(map(str, ToolStatus))
    assert headings("metrics.md") == [metric.names[0] for group in METRICS.values() for metric in group]
    assert sorted(headings("diagnosis-checks.md")) == CHECKS.names()
    options = [f"{group}.{field.name}" for group, record in GROUPS.items() for field in dataclasses.fields(record)]
    assert headings("options.md") == options
    assert headings("reference/commands.md") == [f"rstar2 {name}" for name in COMMANDS]
    rows = re.findall(r"^\| \[`(rstar2/[\w-]+)`\]", TEXTS["environments.md"], re.MULTILINE)
    assert headings("environments.md") == rows
    files = {path.stem for path in (ROOT / "trainers/recipes").glob("[a-z]*.py")}
    assert set(headings(f"trainers/{RECIPES}")) == files


@pytest.mark.parametrize("place", items.KINDS)
def test_every_section_is_on_its_page_and_its_anchors_stay_in_the_index(place):
    index, found = SPLIT[place]
    assert len(found) > 1
    for item in found:
        assert item.summary.endswith("."), item.heading
        assert item.place.startswith(place.removesuffix(".md") + "/")
        for anchor in item.anchors:
            assert index.count(f'<a id="{anchor}"></a>') == 1, anchor
        assert f"(#{item.anchors[0]})" in index
    kept = {re.sub(r'<a id="[^"]+"></a>', "", line) for line in index.split("\n")}
    kept |= {line.lstrip("#") for item in found for line in [*item.lines, f" {item.heading}"]}
    assert [line for line in TEXTS[place].split("\n") if not {line, line.lstrip("#")} & kept] == []


@pytest.mark.parametrize("place", items.KINDS)
def test_every_page_has_its_title_text_code_and_related_pages(place):
    kind = items.KINDS[place]
    for item in SPLIT[place][1]:
        text = items.page(item, PurePosixPath("docs") / place, {"x.md": "X"})
        assert f"\n# {item.title}\n" in text
        assert item.title.startswith(f"{kind.word}: ")
        assert item.heading in item.title
        assert "\nSee also: [X](x.md).\n" in text
        code = re.findall(r"\[((?:rstar2_env|agents|envs_registry|trainers)/[\w./]*)\]\(((?:\.\./)+[\w./]+)\)", text)
        assert [path for path, target in code if not (DOCS / place).parent.joinpath(target).resolve().exists()] == []
        assert code or place == "troubleshooting.md", item.heading
        assert all((DOCS / guide).exists() for guide in kind.see)


def test_an_error_has_its_messages_and_the_code_that_raises_it():
    (sharding,) = [item for item in SPLIT["troubleshooting.md"][1] if item.heading == "Sharding"]
    text = items.page(sharding, PurePosixPath("docs/troubleshooting.md"), {})
    assert "| `The checkpoint … was written without sharding, but this run has sharding=…` |" in text
    assert "[trainers/backends/trl/sharding/choice.py](../trainers/backends/trl/sharding/choice.py)" in text


def test_a_check_is_named_after_its_finding():
    (check,) = [item for item in SPLIT["diagnosis-checks.md"][1] if item.heading == "`all_right`"]
    assert check.title == "Check: Every episode is right, so nothing is learned (`all_right`)"


def test_an_option_has_its_meaning_its_default_and_its_values():
    index, found = SPLIT["options.md"]
    (loss,) = [item for item in found if item.heading == "`optim.max_grad_norm`"]
    text = items.page(loss, PurePosixPath("docs/options.md"), {})
    assert "\n# Option: `optim.max_grad_norm`\n\nLargest gradient norm; larger gradients are clipped to it." in text
    assert "\n| default | values |\n|---|---|\n| `1.0` | a number of at least 0 |\n" in text
    assert "[`optim.max_grad_norm`](#optimmax_grad_norm) | `1.0` | a number of at least 0 | Largest" in index


TEXT = """# Ends

| end |
|---|
| [`a`](#a) |
| [`b-c`](#b-c) |

## `a`

One. Two.

### Below

```sh
## `no heading`
```

## Between

Text.

## `b-c`

Three.
"""


def test_a_section_ends_at_the_next_heading_of_its_level():
    index, (first, second) = items.split("gallery/ends.md", TEXT)
    assert (first.place, first.title, first.summary) == ("gallery/ends/a.md", "End: `a`", "One.")
    assert first.anchors == ["a", "below"]
    assert "## Below" in first.lines
    assert "## `no heading`" in first.lines
    assert [line for line in second.lines if line] == ["Three."]
    assert '| <a id="a"></a><a id="below"></a>[`a`](#a) |' in index
    assert index.partition("## Between")[2].strip() == "Text."


def test_an_index_that_does_not_link_to_all_gets_a_list():
    index, _ = items.split("gallery/ends.md", TEXT.replace("| [`a`](#a) |\n", ""))
    listed = ['- <a id="a"></a><a id="below"></a>[`a`](#a): One.', '- <a id="b-c"></a>[`b-c`](#b-c): Three.', ""]
    lines = index.split("\n")
    assert lines[lines.index(listed[0]) :][:3] == listed


def test_two_sections_with_one_file_are_refused():
    with pytest.raises(ValueError, match=r"several sections would be the page gallery/ends/b-c\.md"):
        items.split("gallery/ends.md", TEXT.replace("## `a`", "## `b/c`"))

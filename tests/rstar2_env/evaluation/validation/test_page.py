"""The HTML report: one file, nothing from elsewhere, and no text of an environment's becomes markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import bad_envs

from rstar2_env.evaluation.validation import validate
from rstar2_env.evaluation.validation.page import page

HOSTILE = (
    '</pre><script>alert("1")</script><img src=x onerror=alert(2)>&lt;b&gt;\x1b[31m\u202e<a href="http://example.org">'
)


class Hostile(bad_envs.PaysEcho):
    """Replaced below."""

    def reset(self, **options):
        text, info = super().reset(**options)
        return text + HOSTILE, info | {"problem_id": HOSTILE}


Hostile.__doc__ = HOSTILE
Hostile.__qualname__ = "Hostile<script>"


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text = set(), set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text.append(data)


def test_hostile_text_stands_in_the_page_as_text():
    report = validate(
        Hostile, level=4, episodes=3, checks=["manifest", "adversarial_floor", "task_declaration_accuracy"]
    )
    made = page(report)
    reader = Reader()
    reader.feed(made)
    assert reader.tags <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "table", "tr", "th", "td", "code", "br",
        "em", "details", "summary", "pre",
    }  # fmt: skip
    assert reader.attributes <= {"lang", "charset", "http-equiv", "content", "name", "class"}
    assert '<script>alert("1")</script>' in "".join(reader.text)
    assert "Hostile<script>: " in "".join(reader.text)
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", made)


def test_it_asks_nothing_of_the_network():
    made = page(validate(bad_envs.Sums, level=1, episodes=2))
    assert "default-src 'none'" in made
    assert not re.search(r"(src|href)\s*=|url\(|@import", made)
    assert "fit to train on" in made

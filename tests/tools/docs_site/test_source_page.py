"""Files of the repository are shown whole, as text, on pages that lead back to the site."""

import html
import re

import pytest
from source_page import page, style


def shown(tmp_path, name, text):
    (tmp_path / name).write_text(text, "utf-8")
    return page(tmp_path, name)


@pytest.mark.parametrize("name", ["a.py", "a.md", "a.txt"])
def test_the_text_of_a_file_is_shown_whole_and_as_text(tmp_path, name):
    text = '\n\nx = "<script>&amp;"  # ```\n\n    \ty\n'
    made = shown(tmp_path, name, text)
    (found,) = re.findall(r"<pre>(.*?)</pre>", made, re.DOTALL)
    assert html.unescape(re.sub(r"</?span[^>]*>", "", found)) == text
    assert "<script>" not in made


def test_code_has_colours_in_light_and_dark(tmp_path):
    (name,) = set(re.findall(r'<span class="(\w+)">def</span>', shown(tmp_path, "a.py", "def f(): pass\n")))
    light, dark = style().split("prefers-color-scheme: dark")
    colours = [re.search(rf"\.source \.{name} {{ color: (#\w+)", part)[1] for part in (light, dark)]
    assert colours[0] != colours[1]


def test_a_page_leads_back_to_the_front_page_from_any_depth(tmp_path):
    (tmp_path / "a").mkdir()
    assert 'href="../../index.html"' in shown(tmp_path, "a/b.py", "")
    assert 'href="../source.css"' in page(tmp_path, "a", ["a/b.py"])


def test_a_folder_is_a_list_of_its_files(tmp_path):
    assert re.findall(r"<li><code>(.+?)</code>", page(tmp_path, "a", ["a/b.py", "a/&.py"])) == ["a/b.py", "a/&amp;.py"]

"""``tools/plain_words.py`` finds each cause of odd English in prose, and nothing in code."""

import json

import plain_words
import pytest
from plain_rules import RULES
from plain_words import findings


@pytest.fixture
def check(tmp_path):
    def run(text, name="page.md"):
        path = tmp_path / name
        path.write_text(text)
        return [(found.line, found.phrase, found.rule.name) for found in findings(path)]

    return run


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_finds_its_bad_example_and_leaves_its_good_one(rule, check):
    def found(example):
        text = example if example.startswith('"""') else f"# {example}\n"
        return {name for _, _, name in check(text, "module.py")}

    assert rule.name in found(rule.bad)
    assert not found(rule.good)


def test_names_of_rules_are_unique():
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_docstrings_comments_and_messages_are_read(check):
    source = '''"""What a module holds."""

beside = anew = 1  # made anew
raise ValueError(
    f"{beside} was made "
    "made anew."
)
'''
    assert check(source, "module.py") == [
        (1, "What a", "what-clause"),
        (3, "anew", "anew"),
        (6, "anew", "anew"),
    ]


def test_a_phrase_is_found_across_lines_and_parts_of_a_string(check):
    source = "x = (\n    'It goes '\n    'on from here.'\n)\n# it has\n# not the weights\n"
    assert [name for _, _, name in check(source, "module.py")] == ["goes-on", "has-not"]


def test_code_in_backticks_and_placeholders_is_not_prose(check):
    assert not check('x = f"a {anew} b"\n"""Call ``make(anew=True)``."""\n', "module.py")
    assert not check("`beside` and [a link](docs/beside.md)\n\n```python\nbeside = anew\n```\n")


def test_strings_of_one_word_are_data(check):
    assert not check('x = "anew"\n', "module.py")


def test_markdown_and_notebooks_are_read(check):
    cells = [
        {"cell_type": "markdown", "source": ["Once\n", "It begins anew."]},
        {"cell_type": "code", "source": ["anew = 'begins anew'"]},
    ]
    assert check("A heading\n\nIt begins anew.\n") == [(3, "anew", "anew")]
    assert [name for _, _, name in check(json.dumps({"cells": cells}, indent=1), "book.ipynb")] == ["anew"]


def test_comments_of_configurations_are_read(check):
    assert check("# made anew\nkey = 'begins anew'  # fine\n", "run.toml") == [(1, "anew", "anew")]


def test_marked_lines_are_left_out(check):
    assert not check("x = 1  # begins anew, plain: ok\n", "module.py")
    assert check("<!-- plain: off -->\nanew\n<!-- plain: on -->\nbeside\n") == [(4, "beside", "beside")]


def test_findings_are_printed_and_make_the_exit_code_1(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("It begins anew.\n")
    assert plain_words.main([str(page)]) == 1
    assert capsys.readouterr().out == f'{page}:1: "anew": again, from scratch, new (anew)\n'
    page.write_text("It starts from scratch.\n")
    assert plain_words.main([str(page)]) == 0


def test_counts_are_printed_by_folder(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("It begins anew, beside it.\n")
    assert plain_words.main(["--counts", str(page)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "    2  in all"


def test_an_unknown_rule_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        plain_words.main(["--rules", "new", "--", str(tmp_path)])
    assert "unknown rules: new" in capsys.readouterr().err

"""Lines for the shell: their commands are found as the shell finds them."""

from __future__ import annotations

import pytest

from rstar2_env.adapters.harbor.shell_line import read_line, without_quotes


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ('echo "a;b"; c', [["echo", '"a;b"'], ["c"]]),
        (r"echo a\;b 'c && d' | e&f||g", [["echo", r"a\;b", "'c && d'"], ["e"], ["f"], ["g"]]),
        ("(cd /a && b) > c && ! d", [["cd", "/a"], ["b"], ["d"]]),
        ('A=1 B="2 3" C=$(a b)/c d', [["a", "b"], ["d"]]),
        ('[ -f "$(echo "a)b" | c)" ] # it\'s; d', [["[", "-f", '"$(echo "a)b" | c)"', "]"], ["echo", '"a)b"'], ["c"]]),
        ("echo $((1 + (2))) '$(a)' $(b $(c))", [["echo", "$((1 + (2)))", "'$(a)'", "$(b $(c))"], ["b", "$(c)"], ["c"]]),
        ("echo `a; b`", [["echo", "`a; b`"]]),
        ("2>/dev/null a <b 2>&1 c", [["a", "c"]]),
        ("for i in a b; do c $i; done", [["for", "i", "in", "a", "b"], ["c", "$i"], ["done"]]),
        ("if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"], ["fi"]]),
        ("case $(a) in b|c) d ;; (e) f; esac && g", [["case", "$(a)"], ["a"], ["d"], ["f"], ["g"]]),
        ("case a in b) case c in d) e;; esac;; f) g;; esac; h", [["case", "a"], ["case", "c"], ["e"], ["g"], ["h"]]),
        ("f() { a; }; f b", [["a"], ["}"], ["f", "b"]]),
        ("echo \"it's $(a) that's\" b", [["echo", "\"it's $(a) that's\"", "b"], ["a"]]),
        (r"$'it\'s' a; `b \` c`", [[r"$'it\'s'", "a"], [r"`b \` c`"]]),
        ("A=(a $(b)) c <<<d; e", [["b"], ["c"], ["e"]]),
        ("a <(b c) d > >(e)", [["a", "<(b c)", "d"], ["b", "c"], ["e"]]),
        ("A=$(" + "$'a' " * 40, [["$'a'"] * 40]),  # no pair of parentheses: all ways to read the quotes would be tried
    ],
)
def test_the_commands_of_a_line_are_those_that_the_shell_finds(text: str, commands: list[list[str]]) -> None:
    assert [command.words for command in read_line(text).commands] == commands


def test_the_commands_of_a_script_have_the_numbers_of_their_lines() -> None:
    script = """\
# it's a comment
a \\
  b; c
cat <<-'E F' <<G && d
\ti; 'j
\tE F
k
G
case l in
  # m
  n) o ;;
esac
p "
q" $(
r)
"""
    commands = read_line(script).commands
    assert [(command.number, command.words[0]) for command in commands] == [
        (2, "a"),
        (3, "c"),
        (4, "cat"),
        (4, "d"),
        (9, "case"),
        (11, "o"),
        (13, "p"),
        (15, "r"),
    ]


@pytest.mark.parametrize(
    ("word", "plain"),
    [
        (r"a'b c'\d", "ab cd"),
        ('"it\'s "$(echo "x\'y")', "it's $(echo \"x'y\")"),
        (r'"a\"b\c"', r'a"b\c'),
        ("a\\\nb'\n'", "ab\n"),
    ],
)
def test_a_word_without_quotes_keeps_its_substitutions(word: str, plain: str) -> None:
    assert without_quotes(word) == plain


def test_the_targets_of_redirections_that_write_are_found() -> None:
    line = read_line('a > "b c" 2>>d <e 3<>f 2>&1 >| g "> h"')
    assert [without_quotes(target) for target in line.written] == ["b c", "d", "f", "g"]


def test_the_functions_and_here_documents_of_a_line_are_found() -> None:
    assert read_line("f() { a; }; g () (b)").functions == {"f", "g"}
    assert read_line("a <<-END").has_here_document
    assert not read_line("a '<<' $((1 << 2)) < b <<< c").has_here_document


@pytest.mark.parametrize("text", ["a 'b", 'a "b', "a `b", 'a "$(b "c")', r"$'a\'", r"A=$($'a\')"])
def test_a_quotation_without_an_end_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="No closing quotation"):
        read_line(text)

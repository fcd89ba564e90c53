"""Finding stored episodes: a file without episodes is refused, and the message says what the file holds."""

from __future__ import annotations

import pytest
from cli_runner import run

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.evaluation.stored.runs import find_stored


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"question": "1 + 1?", "answer": "2"}\n', "its first line has the keys question, answer; expected"),
        ("[1, 2]\n", "line 1: Expected an episode, a JSON object, not '[1, 2]'; expected"),
        ("no JSON\n", "is not a JSON object"),
        ("", "does not contain a complete line: expected"),
        ("\n\n", "does not contain a complete line: expected"),
    ],
)
def test_a_file_without_episodes_is_refused_and_its_content_is_named(text, said, tmp_path):
    file = tmp_path / "file.jsonl"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as refused:
        find_stored(str(file))
    assert said in str(refused.value)
    assert "rstar2 eval --out NAME.jsonl" in str(refused.value)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("compare", "{}", "{}"), "its first line has the keys question, answer"),
        (("verify", "--run", "{}"), "its first line has the keys question, answer"),
        (("diagnose", "{}"), "line 1: expected a JSON object with a whole number 'step', got {'question': '1 + 1?'"),
        (
            ("eval", "rstar2/MathTool-v0", "--agent", "oracle", "-n", "1", "--baseline", "{}"),
            "its first line has the keys question, answer",
        ),
    ],
)
def test_commands_on_runs_name_the_content_of_a_file_of_problems(command, said, tmp_path):
    file = tmp_path / "problems.jsonl"
    file.write_text('{"question": "1 + 1?", "answer": "2"}\n')
    refused = run(*(word.format(file) for word in command))
    assert refused.exit_code == 2
    assert "Error: " in refused.stderr
    assert said in " ".join(refused.stderr.split())

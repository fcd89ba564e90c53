"""A text that is no chat template is refused before a model is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.evaluation.play.policy_crew import PolicyOptions
from rstar2_env.models.chat_template import check_chat_template
from rstar2_env.trainers.options.cold_start import SftOptions
from rstar2_env.trainers.options.config import ModelOptions


@pytest.mark.parametrize("template", [None, "chatml", "{{ messages[0]['content'] }}", "{% for one in messages %}"])
def test_a_template_is_accepted(template: str | None) -> None:
    check_chat_template(template)


def test_the_name_of_a_file_is_no_template(tmp_path: Path) -> None:
    file = tmp_path / "chat.jinja"
    with pytest.raises(ConfigurationError, match=r"contains neither \{\{ nor \{%: give chatml, or the text of a Jinja"):
        check_chat_template("chat.jinja")
    file.write_text("{{ messages }}")
    with pytest.raises(ConfigurationError, match="give the text of the file, not its name"):
        check_chat_template(str(file))


def test_every_record_with_a_chat_template_checks_it() -> None:
    with pytest.raises(ConfigurationError, match="writes no message"):
        PolicyOptions(chat_template="x")
    with pytest.raises(ConfigurationError, match="writes no message"):
        ModelOptions("m", chat_template="x")
    with pytest.raises(ConfigurationError, match="writes no message"):
        SftOptions("m", chat_template="x")

"""``check_chat_template``: refuses a chat template that writes no message, before a model is loaded."""

from __future__ import annotations

import os

from rstar2_env.core.errors import ConfigurationError


def check_chat_template(template: str | None) -> None:
    """Refuse a text that is not a Jinja template, such as the name of a file.

    Args:
        template: ``"chatml"``, a Jinja template, or ``None`` for the tokenizer's own.

    Raises:
        ConfigurationError: The text contains no expression and no statement, so its output ignores the messages.
    """
    if template is None or template == "chatml" or "{{" in template or "{%" in template:
        return
    is_file = os.path.isfile(template)
    how = "give the text of the file, not its name" if is_file else "give chatml, or the text of a Jinja template"
    raise ConfigurationError(
        f"The chat template {template[:60]!r} writes no message, since it contains neither {{{{ nor {{%: {how}.",
        option="chat_template",
    )

"""Turns a report into one HTML file without network access or scripts (``document``), and escapes its texts.

Any text of a report may be hostile: it can contain tags, entities, control characters. ``escaped`` shows it as text
only.
"""

from __future__ import annotations

import html
import re
from typing import Any

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1c2330; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; vertical-align: top; padding: .3rem .6rem;
border-bottom: 1px solid #d8dee6; } .passed { color: #17643a; } .failed { color: #a3161a; font-weight: 600; }
.not { color: #66707c; } pre { background: #f4f6f8; padding: .6rem; white-space: pre-wrap; overflow-wrap: anywhere; }
code { overflow-wrap: anywhere; } @media (prefers-color-scheme: dark) { body { background: #14181d; color: #d9dee5; }
pre { background: #1d232a; } .passed { color: #6fce97; } .failed { color: #ff8d8d; } td, th { border-color: #333c46; } }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")


def document(title: str, body: str) -> str:
    """Return the text of an HTML file.

    Args:
        title: Title and first heading, as plain text.
        body: HTML in which every text is already escaped (``escaped``).
    """
    title = escaped(title)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n<body><h1>{title}</h1>\n'
        f"{body}</body></html>\n"
    )


def escaped(value: Any) -> str:
    """Return ``str(value)`` escaped for HTML; control and text-direction characters are written as code points."""
    said = _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", str(value))
    return html.escape(said.encode("utf-8", "replace").decode("utf-8"), quote=True)

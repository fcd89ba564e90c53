"""``make_inner``: a part that is the option of another part, as the estimator below a wrapper is."""

from __future__ import annotations

from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import make_part, read_part
from rstar2_env.core.options.registry import Registry

from .slots import is_factory


def make_inner(registry: Registry[Any], written: Any) -> Any:
    """Make a part of a name with options, in round brackets or not; or take what was given itself.

    Args:
        registry: Where its name is known.
        written: ``rloo``, ``(gigpo:omega=0.5,gamma=1)``, ``./mine.py:Mine``, a table, a class, a function, or the part.

    Raises:
        ConfigurationError: It does not take its options.
        UnknownNameError: There is no part of that name.
    """
    if isinstance(written, str) and written.startswith("(") and written.endswith(")"):
        written = written[1:-1]
    part = read_part(written, registry.kind)
    found = part.made_by or registry.get(part.name)
    if is_factory(found):
        return make_part(registry, part)
    if part.options:
        raise ConfigurationError(
            f"The {registry.kind} {part.name!r} is no class, and takes no options, such as {', '.join(part.options)}."
        )
    return found

"""``FunctionTool``: makes a typed function a tool, with a schema from its signature.

Covered: arguments of JSON's types, lists of them, ``Literal``, ``| None``, defaults, descriptions through
``Annotated``. The function runs in this process, so it must limit its own work and validate its arguments. Not covered:
running a policy's code, which needs a sandbox.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError
from rstar2_env.core.status import ToolStatus
from rstar2_env.tools.base import CallContext, ToolResult, ToolSpec

_NAMES: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
    types.NoneType: "null",
}


class FunctionTool:
    """A function that the policy may call. Its result is shown as text.

    An exception of the function counts as the policy's error (status ``exception``) and its message is shown, so raise
    ``ValueError`` with a message that tells a model how to correct the call. ``SandboxUnavailableError`` counts as a
    failure of the system (``unavailable``). A parameter annotated ``CallContext`` is not part of the schema: it gets
    the position of the call, with a seed for random numbers.

    Args:
        function: The function. Every parameter needs an annotation; the docstring's first paragraph describes the tool
            to the model.
        name: The name that calls use; the function's own by default.

    Raises:
        ConfigurationError: A parameter has no annotation, or its annotation has no JSON type; or there is no docstring.
    """

    def __init__(self, function: Callable[..., Any], *, name: str | None = None) -> None:
        self._function = function
        self._context: str | None = None
        shown = name or function.__name__
        description = inspect.getdoc(function)
        if not description:
            raise ConfigurationError(f"The tool {shown!r} needs a docstring, which describes the tool to the model.")
        properties: dict[str, Any] = {}
        required: list[str] = []
        hints = get_type_hints(function, include_extras=True)
        for parameter in inspect.signature(function).parameters.values():
            where = f"The parameter {parameter.name!r} of the tool {shown!r}"
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise ConfigurationError(
                    f"{where} must be a parameter that can be passed by name, since a model names its arguments."
                )
            if hints.get(parameter.name) is CallContext:
                self._context = parameter.name
                continue
            if parameter.name not in hints:
                raise ConfigurationError(f"{where} needs an annotation, from which the schema for the model is made.")
            properties[parameter.name] = _schema(hints[parameter.name], where)
            if parameter.default is parameter.empty:
                required.append(parameter.name)
        parameters = {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
        self._spec = ToolSpec(shown, " ".join(description.split("\n\n")[0].split()), parameters)

    @property
    def spec(self) -> ToolSpec:
        """The schema of the tool, read from the function's signature."""
        return self._spec

    def call(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Call the function with arguments that fit the schema."""
        place = {} if self._context is None else {self._context: context}
        try:
            text = str(self._function(**arguments, **place))
        except SandboxUnavailableError as error:
            return ToolResult(self._spec.name, ToolStatus.UNAVAILABLE, f"The tool is not available: {error}")
        except Exception as error:
            kind = type(error).__name__
            return ToolResult(self._spec.name, ToolStatus.EXCEPTION, f"{kind}: {error}", error_type=kind)
        return ToolResult(self._spec.name, ToolStatus.OK if text else ToolStatus.EMPTY, text)

    def close(self) -> None:
        """Do nothing: there are no resources."""


def _schema(annotation: Any, where: str) -> dict[str, Any]:
    """Return the JSON schema of one annotation; ``where`` names the parameter in the error message."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        words = [extra for extra in arguments[1:] if isinstance(extra, str)]
        return {**_schema(arguments[0], where), **({"description": words[0]} if words else {})}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        parts = [_schema(part, where) for part in arguments]
        if all(set(part) == {"type"} and isinstance(part["type"], str) for part in parts):
            return {"type": [part["type"] for part in parts]}
    elif origin is list:
        return {"type": "array", "items": _schema(arguments[0], where)}
    elif origin is dict or annotation in _NAMES:
        return {"type": _NAMES[origin or annotation]}
    raise ConfigurationError(
        f"{where} is annotated {annotation!r}, which has no JSON type. Use str, int, float, bool, list[...], dict, "
        "Literal[...], or a union of a simple type and None."
    )

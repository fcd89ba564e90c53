"""Names, units and the version of the conventions, checked against OpenTelemetry's own package."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

pytest.importorskip("opentelemetry.semconv", reason="needs the extra otel")

from opentelemetry.metrics import Histogram
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.semconv._incubating.attributes import (
    error_attributes,
    gen_ai_attributes,
    server_attributes,
)
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.schemas import Schemas

from rstar2_env.core.telemetry import conventions

NAMES = {name: value for name, value in vars(conventions).items() if isinstance(value, str) and name.isupper()}


def values_of(module: Any) -> set[str]:
    return {value for name, value in vars(module).items() if name.isupper() and isinstance(value, str)}


def test_every_standard_name_is_one_of_the_package() -> None:
    known = {
        *values_of(gen_ai_attributes),
        *values_of(error_attributes),
        *values_of(server_attributes),
        *values_of(gen_ai_metrics),
    }
    standard = {value for value in NAMES.values() if value.startswith(("gen_ai.", "error.", "server."))}
    assert len(standard) > 20
    assert standard <= known


def test_every_other_name_is_in_the_namespace_of_this_package() -> None:
    values = ("chat", "invoke_agent", "execute_tool", "_OTHER", conventions.VERSION, conventions.SCHEMA_URL)
    others = {
        one for one in NAMES.values() if not one.startswith(("gen_ai.", "error.", "server.")) and one not in values
    }
    assert all(one.startswith("rstar2.") for one in others)


def test_the_operations_are_values_of_the_standard() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = {one.value for one in gen_ai_attributes.GenAiOperationNameValues}
    assert {conventions.CHAT, conventions.INVOKE_AGENT, conventions.EXECUTE_TOOL} <= known


def test_the_schema_is_one_that_the_package_names() -> None:
    assert Schemas.V1_41_0.value == conventions.SCHEMA_URL


def test_the_units_are_those_of_the_standard() -> None:
    meter = MeterProvider().get_meter("units")
    made: list[Histogram] = [
        gen_ai_metrics.create_gen_ai_client_operation_duration(meter),
        gen_ai_metrics.create_gen_ai_client_token_usage(meter),
    ]
    described = {one.name: one.unit for one in made}  # type: ignore[attr-defined]  # the SDK's
    assert described == conventions.UNITS


@pytest.mark.parametrize(
    ("figure", "unit"),
    [
        ("seconds/train", "s"),
        ("seconds/share_waiting", ""),
        ("tokens/trained", "{token}"),
        ("tokens/share_trained", ""),
        ("speed/train_tokens_per_second", "{token}/s"),
        ("rollout/pass_rate", ""),
        ("loss", ""),
    ],
)
def test_a_figure_has_its_unit(figure: str, unit: str) -> None:
    assert conventions.unit_of(figure) == unit

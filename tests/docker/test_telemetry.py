"""The profile ``telemetry`` of the compose file, and its dashboard, whose queries name metrics that runs send."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from places import ROOT

pytest.importorskip("opentelemetry.exporter.prometheus", reason="needs opentelemetry-exporter-prometheus (extra dev)")

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import REGISTRY, generate_latest
from scripted_engine import SAMPLING, call, first_times, math_tool, scripted

from rstar2_env.core.episode_metrics import STEP_FIGURES
from rstar2_env.core.telemetry import phase_span, recording, report_figures
from rstar2_env.rollout import EpisodeRequest, Player

FOLDER = ROOT / "docker" / "telemetry"
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
PROFILE = {name: one for name, one in COMPOSE["services"].items() if "profiles" in one}
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text())
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
FIGURES = ("loss", "eval/pass_rate", "speed/train_tokens_per_second", "speed/generated_tokens_per_second")


@pytest.fixture(scope="module")
def page() -> Any:
    """The metrics of an episode and a step, in the names that Prometheus gives them."""
    reader = PrometheusMetricReader(disable_target_info=True)
    engine = scripted(first_times(call("1/0"), 1, "<answer>\\boxed{42}</answer>"))
    with (
        recording(meters=MeterProvider(metric_readers=[reader], shutdown_on_exit=False)),
        Player(math_tool(), engine, engine.codec, sampling=SAMPLING, model="m", provider="p") as player,
    ):
        with phase_span("step", 1):
            player.play([EpisodeRequest(0, 1, {}, 1)])
        report_figures(1, dict.fromkeys([*FIGURES, *(f"rollout/{one}" for one in STEP_FIGURES)], 0.5))
        text = generate_latest(REGISTRY).decode()
    reader.shutdown()
    return text


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_names_a_metric_and_labels_that_runs_send(page: str, query: str) -> None:
    found = set(re.findall(r"\b((?:rstar2|gen_ai)_\w+)(?=[{)\[])", query))
    grouped = {name.strip() for group in re.findall(r"by \(([^)]*)\)", query) for name in group.split(",")}
    metrics = found - grouped
    assert metrics
    for name in metrics:
        assert re.search(rf"^{name}[{{ ]", page, re.MULTILINE), name
    for label in {*grouped, *re.findall(r"(\w+)!?=\"", query)}:
        assert re.search(rf'[{{,]{label}="', page), label


def test_every_panel_has_the_source_that_is_provisioned() -> None:
    sources = yaml.safe_load((FOLDER / "sources.yml").read_text())["datasources"]
    assert {panel["datasource"]["uid"] for panel in DASHBOARD["panels"]} <= {one["uid"] for one in sources}
    assert {re.sub(r"https?://([\w.]+):\d+", r"\1", one["url"]) for one in sources} <= set(PROFILE)


def test_the_files_that_the_services_mount_exist() -> None:
    mounted = [volume for one in PROFILE.values() for volume in one.get("volumes", ()) if volume.startswith("./")]
    assert len(mounted) == 4
    assert all((ROOT / volume.split(":")[0]).is_file() and volume.endswith(":ro") for volume in mounted)


def test_only_the_page_is_reached_from_outside_and_only_from_this_machine() -> None:
    assert {name: one.get("ports") for name, one in PROFILE.items() if "ports" in one} == {
        "grafana": ["127.0.0.1:3000:3000"]
    }
    outside = {name for name, one in COMPOSE["services"].items() if "page" in one.get("networks", ())}
    assert outside == {"grafana"}


def test_the_trainer_sends_to_the_services_of_the_profile_and_only_if_it_is_asked_to() -> None:
    given = COMPOSE["services"]["trainer"]["environment"]
    assert given["RSTAR2_OTEL"] == "${RSTAR2_OTEL:-0}"
    for name in ("TRACES", "METRICS"):
        host = given[f"OTEL_EXPORTER_OTLP_{name}_ENDPOINT"].split("//")[1].split(":")[0]
        assert host in PROFILE
    assert "--web.enable-otlp-receiver" in PROFILE["prometheus"]["command"]
    assert Path(PROFILE["prometheus"]["command"][0].partition("=")[2]).name == "prometheus.yml"

"""The pictures of docs/diagnosis-checks.md are those of the checks' runs."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from check_pictures import FOLDER, picture, pictures

from rstar2_env.diagnosis.base import CHECKS
from rstar2_env.diagnosis.examination import every_check

SVG = "{http://www.w3.org/2000/svg}"


def test_every_check_has_the_picture_of_its_runs() -> None:
    drawn = pictures()
    assert sorted(drawn) == CHECKS.names()
    kept = {path.stem: path.read_text("utf-8") for path in FOLDER.glob("*.svg")}
    assert kept == drawn, "run: python tests/support/check_pictures.py"


@pytest.mark.parametrize(
    ("name", "panels", "words"),
    [
        ("kl_runs_away", 2, "kl, 0 to"),
        ("throughput_falls", 2, "speed/generated_tokens_per_second, 0 to"),
        ("sampler_stuck", 0, "groups"),
    ],
)
def test_a_picture_shows_the_judged_figure_or_the_numbers_of_the_evidence(name, panels, words) -> None:
    every_check()
    root = ElementTree.fromstring(picture(name))
    frames = [one for one in root.iter(f"{SVG}rect") if one.get("fill") == "none"]
    assert len(frames) == panels
    assert any(words in (text.text or "") for text in root.iter(f"{SVG}text"))

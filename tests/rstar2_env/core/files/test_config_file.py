"""``read_mapping``: YAML whose aliases repeat values without end."""

from __future__ import annotations

from pathlib import Path

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files import config_file
from rstar2_env.core.files.config_file import read_mapping


def repeated(levels: int) -> str:
    """YAML whose last value contains 8 to the power of ``levels`` values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x]"]
    lines += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 8)}]" for at in range(1, levels)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("text", [repeated(9), "a: &a [*a]\n", "a: &a {b: *a}\n"], ids=["many", "in itself", "mapping"])
def test_aliases_that_repeat_values_without_end_are_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"more than 100000 values, because aliases repeat them.* line 1"):
        read_mapping(file)


def test_aliases_and_merged_mappings_are_read(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(f"{repeated(4)}base: &base {{b: 1}}\nown:\n  <<: *base\n  c: 2\n")
    found = read_mapping(file)
    assert found["own"] == {"b": 1, "c": 2}
    assert len(found["a3"]) == 8


@pytest.mark.parametrize(("repetitions", "is_read"), [(0, True), (8, True), (10, False)])
def test_a_large_file_is_read_unless_aliases_repeat_most_of_it(
    repetitions: int, is_read: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_file, "_MOST_VALUES", 1000)  # PyYAML needs seconds for 100,000 values
    numbers = ", ".join(["1"] * 1001)
    file = tmp_path / "x.yaml"
    file.write_text(f"a: &a [{numbers}]\n" + "".join(f"b{at}: *a\n" for at in range(repetitions)))
    if is_read:
        assert len(read_mapping(file)["a"]) == 1001
        return
    with pytest.raises(ConfigurationError, match="more than 10140 values, because aliases repeat them"):
        read_mapping(file)

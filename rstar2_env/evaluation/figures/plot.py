"""Plots of results, which a notebook shows and which can be saved as files."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rstar2_env.core.episode_metrics import FIGURES
from rstar2_env.core.errors import ConfigurationError, MissingExtraError
from rstar2_env.core.files.outputs import check_file, replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rstar2_env.evaluation.figures.intervals import IntervalFigures

COLOURS = ("#1f6feb", "#d9730d", "#2da44e", "#8250df")


_FORMATS = ("png", "svg", "pdf", "jpg", "jpeg", "webp", "tif", "tiff", "eps", "ps")
"""Formats of pictures that matplotlib writes."""


def picture_format(path: Path) -> str:
    """Return the format that the suffix of a picture's file selects; PNG without a suffix.

    Raises:
        ConfigurationError: The suffix does not name a picture format.
    """
    name = path.suffix.removeprefix(".").lower() or "png"
    if name not in _FORMATS:
        raise ConfigurationError(
            f"A plot cannot be written to {path} in the format {path.suffix}: name the file "
            f"{path.with_suffix('.png').name}, or choose another format: {', '.join(_FORMATS[1:])}."
        )
    return name


class Plot:
    """A picture: a notebook shows it as the value of a cell.

    Args:
        width: Width in inches.
        height: Height in inches.

    Attributes:
        figure: The matplotlib figure, which may be changed further.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """

    def __init__(self, width: float = 10, height: float = 3.9) -> None:
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingExtraError("train", "A plot") from error
        # Without pyplot, which would choose a window system.
        self.figure: Figure = Figure(figsize=(width, height), dpi=130)

    def axes(self, count: int) -> list[Any]:
        """Add panels side by side, and return their axes."""
        found = list(self.figure.subplots(1, count, squeeze=False)[0])
        for axis in found:
            axis.grid(alpha=0.25)
            axis.spines[["top", "right"]].set_visible(False)
        return found

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the picture to a file, whose suffix selects the format; its folder is created if needed.

        Args:
            path: The file.
            overwrite: Replace an existing file.

        Raises:
            ConfigurationError: The file exists already, cannot be written, or has the suffix of another format.
        """
        path = Path(path)
        check_file(path, option="path", overwrite=overwrite)
        picture = picture_format(path)
        with replacing(path) as partial:
            self.figure.savefig(partial, format=picture)
        return path

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.figure.savefig(file, format="png")
        return file.getvalue()


def plot_evaluation(figures: IntervalFigures, ks: Sequence[int], title: str) -> Plot:
    """Plot each figure that is a share, with its interval, and the curve of pass@k if there are several k.

    Args:
        figures: The figures to plot, with their intervals.
        ks: The values of k for which pass@k is plotted.
        title: Title of the picture.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    plot = Plot(height=4.2)
    curve = [(k, found) for k in ks if (found := figures.by_name.get(f"pass@{k}")) is not None]
    shares, *rest = plot.axes(2 if len(curve) > 1 else 1)
    shown = {figure.label: figures.by_name.get(name) for name, figure in FIGURES.items() if figure.percent}
    known = {label: one for label, one in shown.items() if label and one is not None and math.isfinite(one.value)}
    for place, one in enumerate(known.values()):
        shares.plot([one.low, one.high], [place, place], color=COLOURS[0], linewidth=2, alpha=0.55)
        shares.plot([one.value], [place], "o", color=COLOURS[0])
    shares.set_yticks(range(len(known)), labels=list(known))
    shares.set_xlim(-0.02, 1.02)
    shares.invert_yaxis()
    shares.set_title("shares, with 95 % intervals", fontsize=10, loc="left")
    for axis in rest:
        places, at_k = [k for k, _ in curve], [one for _, one in curve]
        axis.plot(places, [one.value for one in at_k], "o-", color=COLOURS[0], linewidth=2, markersize=4.5)
        axis.fill_between(places, [one.low for one in at_k], [one.high for one in at_k], color=COLOURS[0], alpha=0.15)
        axis.set_xscale("log", base=2)
        axis.set_xticks(places, labels=list(map(str, places)))
        axis.set_ylim(0, 1.02)
        axis.set_xlabel("k (samples of a problem)")
        axis.set_title("pass@k", fontsize=10, loc="left")
    plot.figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    plot.figure.tight_layout()
    return plot

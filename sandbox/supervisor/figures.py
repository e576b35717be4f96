"""matplotlib in a box: figures become pictures whatever backend the cell chose, never larger than
the pixel limit, each once."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

_MARGIN = 0.1
"""Inches around a figure, as notebooks have it."""
_MIN_DPI = 20.0
_MAX_SIDE = 30_000
"""Pixels; the renderer takes no more than twice that."""
_TOO_FAR = 4.0
"""An artist that makes the picture so many times larger than its figure is left outside."""

Show = Callable[[bytes, dict[str, Any]], None]


def figure_png(figure: Any, max_pixels: int) -> tuple[bytes, dict[str, Any]]:
    """PNG bytes and the display metadata of one figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = figure.canvas
    if not hasattr(canvas, "get_renderer"):
        canvas = FigureCanvasAgg(figure)
    with _of_bounded_size(figure, max_pixels) as (width, height, dpi, metadata):
        box = _tight_box(figure, canvas, width, height, max_pixels / (dpi * dpi))
        buffer = io.BytesIO()
        canvas.print_figure(
            buffer, format="png", dpi=dpi, bbox_inches=box, facecolor=figure.get_facecolor()
        )
    return buffer.getvalue(), metadata


@contextmanager
def _of_bounded_size(
    figure: Any, max_pixels: int
) -> Generator[tuple[float, float, float, dict[str, Any]]]:
    """Width and height in inches, dots an inch and the display metadata, of a figure that is made
    smaller for a while where it is too large: first with fewer dots, then, as no font can be drawn
    with next to none, with fewer inches."""
    width, height = (float(side) for side in figure.get_size_inches())
    dpi = float(figure.dpi)
    scale = min(1.0, math.sqrt(max_pixels / (width * height)) / dpi * 0.999)
    scale = min(scale, _MAX_SIDE / (max(width, height) * dpi))
    if scale == 1:
        yield width, height, dpi, {}
        return
    metadata = {"shrunk_from": [round(width * dpi), round(height * dpi)]}
    fewer = max(dpi * scale, min(dpi, _MIN_DPI))
    inches = scale * dpi / fewer
    figure.set_dpi(fewer)
    figure.set_size_inches(width * inches, height * inches, forward=False)
    try:
        yield width * inches, height * inches, fewer, metadata
    finally:
        figure.set_dpi(dpi)
        figure.set_size_inches(width, height, forward=False)


def _tight_box(figure: Any, canvas: Any, width: float, height: float, area: float) -> Any:
    """The box around everything drawn; None (the figure's own) where that would be absurd."""
    if hasattr(figure, "draw_without_rendering"):
        figure.draw_without_rendering()
    box = figure.get_tightbbox(canvas.get_renderer())
    if box is None or not all(map(math.isfinite, box.extents)):
        return None
    box = box.padded(_MARGIN)
    too_far = box.width > _TOO_FAR * width or box.height > _TOO_FAR * height
    return None if too_far or box.width * box.height > area else box


def show_all(show: Show, max_pixels: int) -> None:
    """Shows every open figure that holds anything, then closes them all."""
    pylab = sys.modules.get("matplotlib._pylab_helpers")
    if pylab is None or not pylab.Gcf.figs:
        return
    figures = [manager.canvas.figure for manager in pylab.Gcf.get_all_fig_managers()]
    try:
        for figure in figures:
            _show_one(figure, show, max_pixels)
    finally:
        sys.modules["matplotlib.pyplot"].close("all")


def is_empty(figure: Any) -> bool:
    return not (figure.axes or figure.lines or figure.texts or figure.images or figure.patches)


def _show_one(figure: Any, show: Show, max_pixels: int) -> None:
    if is_empty(figure):
        return
    try:
        data, metadata = figure_png(figure, max_pixels)
    except (
        ArithmeticError,
        LookupError,
        RuntimeError,
        TypeError,
        ValueError,
        MemoryError,
    ) as error:
        print(f"Figure not drawn: {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
        return
    show(data, metadata)


def patch_input(refuse: Callable[..., None]) -> None:
    """What would wait for a click or a key says at once that none will come."""
    figure_class = sys.modules["matplotlib.figure"].Figure
    figure_class.ginput = figure_class.waitforbuttonpress = refuse


def patch_pyplot(pyplot: Any, show: Show, max_pixels: int) -> None:
    """`plt.show()` and `figure.show()` show pictures, under Agg too."""
    figure_class = sys.modules["matplotlib.figure"].Figure

    def show_figures(*_: Any, **__: Any) -> None:
        """Shows and closes all open figures."""
        show_all(show, max_pixels)

    def show_figure(self: Any, *_: Any, **__: Any) -> None:
        """Shows this figure."""
        _show_one(self, show, max_pixels)

    pyplot.show = show_figures
    figure_class.show = show_figure

"""What differs in a box from a notebook at a desk: pictures instead of windows, nobody to type,
`exit` that ends a cell and not the kernel."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import os
import random
import signal
import sys
import warnings
from typing import Any

from IPython.core.autocall import IPyAutocall

from . import belonging, figures, imports

_NO_INPUT = "{} is not available: nobody can type here. Put the value into the code instead."
_EMPTY = "Empty picture ({}x{}): nothing to show."


class Exit(IPyAutocall):
    """`exit`, `quit`, with or without brackets: an error of this cell; variables stay."""

    rewrite = False

    def __call__(self, code: Any = None) -> None:
        raise SystemExit("" if code is None else code)

    def __repr__(self) -> str:
        return "exit() ends this cell; the kernel and its variables stay."


def no_input(what: str) -> str:
    return _NO_INPUT.format(what)


def _interruptible() -> None:
    """A child that a cell forked ends at an interrupt at once, without a traceback of its own."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _no_breakpoint(*_: Any, **__: Any) -> None:
    raise RuntimeError(no_input("breakpoint()"))


def _text_of_image(image: Any, printer: Any, _: bool) -> None:
    printer.text(repr(image))
    if not image.width or not image.height:
        printer.text(" " + _EMPTY.format(*image.size))


def _no_clicks(*_: Any, **__: Any) -> None:
    raise RuntimeError(no_input("Input by mouse and keyboard"))


class Hooks:
    """Adapts one kernel's shell and the libraries that its cells will import."""

    def __init__(self, shell: Any, max_pixels: int, seed: int) -> None:
        self._shell = shell
        self._max_pixels = max_pixels
        self._seed = seed

    def install(self, work_dir: str) -> None:
        shell = self._shell
        shell.user_ns.update({"exit": Exit(shell), "quit": Exit(shell)})
        shell.user_ns_hidden.update({"exit": None, "quit": None})
        # In modules that a cell imports there are none otherwise.
        shell.builtin_trap.auto_builtins.update({"exit": Exit(shell), "quit": Exit(shell)})
        sys.breakpointhook = _no_breakpoint
        warnings.filterwarnings("ignore", message="To exit: use")
        random.seed(self._seed)
        os.register_at_fork(after_in_child=_interruptible)
        self._formatters()
        patches = {
            "concurrent.futures.thread": belonging.patch_pools,
            "numpy.random": self._seed_numpy,
            "matplotlib.pyplot": self._pyplot,
            "PIL.Image": self._pil,
            "cv2": self._cv2,
        }
        imports.install(patches, work_dir)

    def show(self, data: bytes, metadata: dict[str, Any]) -> None:
        """Publishes a PNG as the cell's next output."""
        self._shell.display_pub.publish({"image/png": data}, {"image/png": metadata})

    def show_open_figures(self) -> None:
        figures.show_all(self.show, self._max_pixels)

    def show_image(self, image: Any) -> None:
        from . import pictures  # numpy and PIL: only once a cell has a picture

        shown = pictures.png(image, self._max_pixels)
        if shown is None:
            print(_EMPTY.format(*image.size))  # noqa: T201
        else:
            self.show(*shown)

    def _formatters(self) -> None:
        formatters = self._shell.display_formatter.formatters
        formatters["image/png"].for_type_by_name("PIL.Image", "Image", self._png_of_image)
        formatters["text/plain"].for_type_by_name("PIL.Image", "Image", _text_of_image)
        formatters["image/jpeg"].for_type_by_name("PIL.Image", "Image", lambda _: None)
        formatters["image/png"].for_type_by_name("matplotlib.figure", "Figure", self._png_of_figure)

    def _png_of_figure(self, figure: Any) -> tuple[bytes, dict[str, Any]] | None:
        return None if figures.is_empty(figure) else figures.figure_png(figure, self._max_pixels)

    def _png_of_image(self, image: Any) -> tuple[bytes, dict[str, Any]] | None:
        from . import pictures  # as above

        return pictures.png(image, self._max_pixels)

    def _seed_numpy(self, numpy_random: Any) -> None:
        numpy_random.seed(self._seed % 2**32)

    def _pyplot(self, pyplot: Any) -> None:
        figures.patch_pyplot(pyplot, self.show, self._max_pixels)
        figures.patch_input(_no_clicks)

    def _pil(self, module: Any) -> None:
        def show(image: Any, *_: Any, **__: Any) -> None:
            """Shows this picture as an output of the cell."""
            self.show_image(image)

        module.Image.show = show

    def _cv2(self, cv2: Any) -> None:
        def imshow(_: Any, picture: Any) -> None:
            """Shows this picture as an output of the cell."""
            from . import pictures  # as above

            self.show_image(pictures.from_cv2(picture))

        def nothing(*_: Any, **__: Any) -> None:
            """There are no windows here."""

        def no_key(*_: Any, **__: Any) -> int:
            """Nobody presses a key here."""
            return -1

        cv2.imshow = imshow
        cv2.waitKey = cv2.waitKeyEx = cv2.pollKey = no_key
        for name in ("namedWindow", "destroyWindow", "destroyAllWindows", "resizeWindow"):
            setattr(cv2, name, nothing)
        for name in ("moveWindow", "setWindowTitle", "setWindowProperty", "startWindowThread"):
            setattr(cv2, name, nothing)

"""`--plot`: values and gradients as images and the loss over steps as a curve, in a file by
matplotlib or on a terminal in blocks.

Invariant: the same report gives the same bytes of a file; what is drawn is bounded.
"""

from __future__ import annotations

import io

import numpy as np

from ...graph.node import Node
from ...graph.op import value_of
from ...graph.state import STATE
from ...language.program.running import run_program
from ...session import Options, Report
from ...source import Source
from ...suggest import unknown
from ..files import CannotWrite, check_place, named_arrays
from ..heat import scale_of
from ..text import format_count, format_number, format_shape, printable
from ..values import SPARK
from .blocks import grid_of, reduced
from .png import needs_pictures

MOST = 24  # images
_CELLS = 256  # rows and columns of an image
_POINTS = 100_000  # of a curve


def check_file(path: str, programs: int) -> None:
    """Refuse before anything runs what cannot be drawn into this file."""
    if not path.lower().endswith((".png", ".svg")):
        raise CannotWrite(f"cannot draw into `{path}`", "name it with .png or .svg")
    if programs > 1:
        raise CannotWrite(
            f"a picture is of one program, not of {programs}", "draw the programs one by one"
        )
    check_place(path)
    needs_pictures("--plot to a file", "without it: --plot alone draws on the terminal")


def observed(source: Source, options: Options) -> tuple[Report, list[float]]:
    """Run a program; also the single numbers that it called `backward()` on, in order."""
    losses: list[float] = []

    def see(seeds: list[tuple[Node, Node]]) -> None:
        node = seeds[0][0]
        by_backward = STATE.differentiated[1]
        if by_backward and len(seeds) == 1 == node.numel and len(losses) < _POINTS:
            losses.append(float(value_of(node).item()))

    STATE.observers.append(see)
    try:
        return run_program(source, options), losses
    finally:
        STATE.observers.clear()


def chosen(report: Report, show: tuple[str, ...], losses: list[float]) -> dict[str, np.ndarray]:
    """What is drawn, by name: what a glob matches, else leaves with their gradients, else every
    tensor; no single numbers unless there is nothing else."""
    leaves = [r.name for r in report.tensors.values() if r.grad is not None and r.is_leaf]
    pairs = tuple(key for name in leaves for key in (name, f"{name}.grad"))
    names = show or pairs or tuple(report.tensors)
    found = named_arrays(report, (), names) if names else {}
    if show and not found:
        message = f"--show {printable(show[0], 100)}: the program has no such tensor"
        raise unknown(message, show[0], named_arrays(report, (), ()))
    drawn = {name: a for name, a in found.items() if grid_of(a) is not None}
    if not drawn and len(losses) < 2:
        raise CannotWrite(
            "--plot: there is nothing to draw",
            "it draws tensors of numbers and their gradients, and losses of several steps",
        )
    return {name: a for name, a in drawn.items() if a.size > 1} or drawn


def curve_lines(losses: list[float], name: str, unicode: bool, width: int) -> list[str]:
    """The curve as one line of blocks with its ends; nothing without two steps."""
    if len(losses) < 2:
        return []
    numbers, scale = _scaled(losses)
    first, last = (format_number(losses[at], 4) for at in (0, -1))
    head = f"{name} over {format_count(len(losses), 'step')}{scale}: {first} to {last}"
    if not unicode:
        return [head]
    places = np.linspace(0, len(numbers) - 1, min(len(numbers), max(8, width - 2))).round()
    shown = numbers[places.astype(int)]
    finite = shown[np.isfinite(shown)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    steps = (shown - low) / ((high - low) or 1.0) * (len(SPARK) - 1)
    return [head, " " + "".join(SPARK[round(s)] if np.isfinite(s) else "!" for s in steps), ""]


def _scaled(losses: list[float]) -> tuple[np.ndarray, str]:
    """The numbers, as logarithms where they span more than two orders of magnitude."""
    numbers = np.array(losses)
    finite = numbers[np.isfinite(numbers)]
    if finite.size and finite.min() > 0 and finite.max() > 100 * finite.min():
        return np.log10(numbers), " (log)"
    return numbers, ""


def figure(report: Report, arrays: dict[str, np.ndarray], losses: list[float], form: str) -> bytes:
    """A file of this form (png or svg): the curve on top, images two in a row."""
    from matplotlib import rc_context
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpec
    from matplotlib.ticker import MaxNLocator

    curve = len(losses) > 1
    shown = list(arrays.items())[:MOST]
    rows = (len(shown) + 1) // 2
    signs = LinearSegmentedColormap.from_list("signs", ["#0b4a94", "#f7f7f7", "#b84a00"])
    colors = signs.with_extremes(bad="#00b000")
    with rc_context({"svg.hashsalt": "autodiff", "svg.fonttype": "none", "font.size": 9.0}):
        drawing = Figure(figsize=(9, 2.6 * (rows + curve) + 0.4), layout="constrained")
        grid = GridSpec(rows + curve, 2, figure=drawing)
        title = f"{report.file}: {report.objective or report.loss or 'values'}"
        if len(arrays) > MOST:
            title += f" ({len(arrays) - MOST} more: --show)"
        drawing.suptitle(printable(title, 120), parse_math=False)
        if curve:
            axes = drawing.add_subplot(grid[0, :])
            axes.plot(range(1, len(losses) + 1), losses, color="#2f6fae", linewidth=1.5)
            axes.set_yscale("log" if _scaled(losses)[1] else "linear")
            axes.set(xlabel="backward pass", ylabel=report.objective or "loss")
            axes.grid(alpha=0.3)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        for at, (name, array) in enumerate(shown):
            axes = drawing.add_subplot(grid[curve + at // 2, at % 2])
            cells = grid_of(array)
            assert cells is not None
            most = scale_of(cells) or 1.0
            image = axes.imshow(
                reduced(cells, _CELLS, _CELLS), cmap=colors, vmin=-most, vmax=most,
                aspect="auto", interpolation="nearest",
                extent=(-0.5, cells.shape[1] - 0.5, cells.shape[0] - 0.5, -0.5),
            )  # fmt: skip
            label = f"{printable(name, 60)}  {format_shape(array.shape)}"
            axes.set_title(label, parse_math=False)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
            if len(cells) == 1:
                axes.set_yticks([])
            drawing.colorbar(image, ax=axes)
        file = io.BytesIO()
        unstamped = {"Software": None} if form == "png" else {"Date": None, "Creator": None}
        drawing.savefig(file, format=form, dpi=144, metadata=unstamped)
    return file.getvalue()

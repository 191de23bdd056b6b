"""Pictures as PNG, by the libraries of the extra `pictures`: resvg draws SVG, matplotlib has the
font.

Invariant: the same picture gives the same bytes, but for signs that the font lacks.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from ..files import CannotWrite

_PIXELS = 60_000_000  # of the largest picture
_SIDE = 30_000


def needs_pictures(what: str, otherwise: str) -> None:
    """Refuse what needs the extra before anything runs, if a package of it is missing."""
    if all(find_spec(name) for name in ("matplotlib", "resvg_py")):
        return
    raise CannotWrite(
        f"{what} needs the extra `pictures`, which is not installed",
        "pip install 'autodiff-cli[pictures]'\n"
        "or: pipx install --force 'autodiff-cli[pictures]'\n"
        f"or: uv tool install 'autodiff-cli[pictures]'\n{otherwise}",
    )


def png(svg: str) -> bytes:
    """An SVG text in twice its size; smaller where that would be too large."""
    import matplotlib
    import resvg_py

    fonts = Path(matplotlib.get_data_path(), "fonts", "ttf")
    size = re.search(r' width="([0-9.]+)" height="([0-9.]+)"', svg)
    assert size is not None
    width, height = float(size[1]), float(size[2])
    zoom = min(2.0, (_PIXELS / (width * height)) ** 0.5, _SIDE / max(width, height))
    return bytes(
        resvg_py.svg_to_bytes(
            svg, zoom=zoom, monospace_family="DejaVu Sans Mono",
            font_files=[str(fonts / f"DejaVuSansMono{face}.ttf") for face in ("", "-Bold")],
        )
    )  # fmt: skip

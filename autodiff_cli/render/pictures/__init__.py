"""Pictures: graphs as SVG, PNG and HTML, arrays and losses as images and blocks."""

from .svg import STYLE as STYLE
from .svg import graph_svg as graph_svg

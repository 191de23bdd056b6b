"""The form of one explained error code."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """What `autodiff help CODE` tells; `wrong` fails with the code and `right` runs; a comment
    gives the command line where one matters."""

    title: str
    cause: str
    wrong: str
    right: str

"""The recorded graph of a program in PyTorch, and the first value or gradient that departs.

Nothing of a program's text runs there: what is run is written anew from the graph, as calls of a
fixed list of PyTorch's functions. Invariant: it runs in a process of its own, with an empty
environment, in an empty folder, under limits.
"""

from __future__ import annotations

import io
import json
import math
import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import AutodiffError, Diagnostic, Label, fail
from ...graph.op import value_of
from ...graph.state import STATE
from ...numerals import aligned
from ...transform.torch_source import Recording, TorchSource
from .. import model
from ..differences import GraphCheck, unhooked
from ..watched import Watched
from .departures import differs

if TYPE_CHECKING:
    from ...source import Span
    from ..runner import FileCheck


GRACE = 1.0  # seconds that it has to end by itself


class NotComparable(Exception):
    """PyTorch refused the graph, or it cannot be written for PyTorch."""


def against_item(check: FileCheck) -> None:
    """Add the `torch` item: passed when every value and gradient agrees."""
    item = check.item("torch")
    if not check.add(item) or check.settings.collect:
        return
    started = time.perf_counter()
    try:
        item.diagnostic = _compared(check)
        item.status = model.PASSED if item.diagnostic is None else model.FAILED
        if item.diagnostic is not None and item.diagnostic.span is not None:
            item.line = item.diagnostic.span.line
    except NotComparable as problem:
        item.status = model.NOISY
        item.diagnostic = Diagnostic(
            "W602", f"cannot be compared with PyTorch: {problem}"[:500], severity="warning",
            helps=("compare the part that both understand",),
        )  # fmt: skip
    except AutodiffError as error:
        item.status, item.diagnostic = model.ERROR, error.diagnostic
    item.seconds = time.perf_counter() - started


def _compared(check: FileCheck) -> Diagnostic | None:
    program = Watched(check.source, check.options(), trace=True)
    with Recording() as recording:
        STATE.results.append(recording.derived)
        try:
            program.run()
        finally:
            STATE.results.clear()
    written = Written(program, recording)
    found = answer_of(written.request(check), written.source.data)
    if "refused" in found:
        raise NotComparable(str(found["refused"]))
    return _first_value(written, found) or _first_gradient(written, found)


class Written:
    """A program's graph for PyTorch: its assignments, and its first and last backward pass."""

    def __init__(self, program: Watched, recording: Recording):
        self.source = TorchSource(recording.made)
        try:
            name = self.source.name
            self.entries = [(text, at, node, name(node)) for text, at, node in program.history]
            self.passes = [
                (seeds, ([name(node) for node, _ in seeds], [name(weight) for _, weight in seeds]))
                for seeds in program.passes
            ]
        except AutodiffError as error:
            if error.code != "W602":
                raise
            place = f" (line {error.span.line})" if error.span else ""
            raise NotComparable(error.message + place) from None
        self.wanted = {entry[3]: entry for entry in self.entries if entry[2].requires_grad}

    def request(self, check: FileCheck) -> dict[str, Any]:
        """What the other process is asked."""
        timeout = check.settings.timeout
        return {
            "source": "\n".join(self.source.lines),
            "leaves": self.source.leaves,
            "default": STATE.default_dtype.name,
            "values": list(dict.fromkeys(name for *_, name in self.entries)),
            "passes": [(*names, list(self.wanted)) for _, names in self.passes],
            "seconds": 3600 if timeout is None else math.ceil(timeout),
            "bytes": STATE.max_bytes + (256 << 20),
        }


# -- the other process ----------------------------------------------------------------------------


def torch_folders() -> list[str]:
    """The folders that PyTorch and NumPy are imported from; nothing when there is no PyTorch. The
    current folder is not looked at: what lies there is the program's."""
    from importlib.machinery import PathFinder

    here = os.path.realpath(".")
    places = [place for place in sys.path if place and os.path.realpath(place) != here]
    torch, numpy = (PathFinder.find_spec(name, places) for name in ("torch", "numpy"))
    if torch is None:
        return []
    origins = filter(None, (getattr(spec, "origin", None) for spec in (torch, numpy)))
    return list(dict.fromkeys(os.path.dirname(os.path.dirname(origin)) for origin in origins))


class Beside:
    """PyTorch in a process of its own, which is kept for further files until it was ended."""

    process: Any = None

    def answer(self, request: dict[str, Any], data: dict[str, Any]) -> bytes:
        """What it answers to a request; nothing when it ended before."""
        from threading import Timer

        text = json.dumps(request).encode()
        arrays = io.BytesIO()
        np.savez(arrays, **data)
        sent = len(text).to_bytes(8, "little") + text + arrays.getvalue()
        if self.process is None:
            self._start()
        timer = Timer(request["seconds"] + GRACE, self.process.kill)
        timer.start()
        reply = b""
        try:
            self.process.stdin.write(len(sent).to_bytes(8, "little") + sent)
            self.process.stdin.flush()
            size = int.from_bytes(self.process.stdout.read(8), "little")
            reply = self.process.stdout.read(size)
        except BrokenPipeError:
            pass
        finally:
            timer.cancel()
            if not reply:
                self.close()
        return reply

    def _start(self) -> None:
        """In an empty folder, which the process removes when there are no more requests."""
        import subprocess
        from tempfile import mkdtemp

        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_side.py")
        environment = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        if "SYSTEMROOT" in os.environ:  # Windows starts no process without it
            environment["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
        self.folder = mkdtemp()
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-B", script, *torch_folders()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=self.folder,
        )

    def close(self) -> None:
        """End it."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.communicate()
            with suppress(OSError):
                os.rmdir(self.folder)


BESIDE = Beside()


def answer_of(request: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """The arrays that the other process gives."""
    reply = BESIDE.answer(request, data)
    if not reply:
        raise NotComparable("it ended before it had answered; its time or its memory was over")
    with np.load(io.BytesIO(reply)) as found:
        return dict(found)


# -- comparing ------------------------------------------------------------------------------------


def _first_value(written: Written, found: dict[str, Any]) -> Diagnostic | None:
    departed: list[tuple[str, Span, str, list[Any]]] = []
    for name, span, node, at in written.entries:
        text, _, rows = differs(value_of(node), found[at])
        if text is not None:
            departed.append((name, span, text, rows))
    return _departed(departed, "the value of") if departed else None


def _first_gradient(written: Written, found: dict[str, Any]) -> Diagnostic | None:
    for i, (seeds, _) in enumerate(written.passes):
        wanted = [entry for at, entry in written.wanted.items() if f"{at}.{i}" in found]
        graph = GraphCheck(seeds)
        with unhooked(graph.replay.order):
            nodes = graph.objective.gradients([node for _, _, node, _ in wanted])
        departed = []
        for (name, span, node, at), gradient in reversed(list(zip(wanted, nodes, strict=True))):
            ours = np.asarray(value_of(gradient)).astype(node.dtype)
            text, _, rows = differs(ours, found[f"{at}.{i}"])
            if text is not None:
                departed.append((name, span, text, rows))
        if departed:
            return _departed(departed, "the gradient of")
    return None


def _departed(departed: list[tuple[str, Span, str, list[Any]]], what: str) -> Diagnostic:
    name, span, text, rows = departed[0]
    table = "\n".join(aligned([("index", "autodiff", "PyTorch", "abs diff"), *rows]))
    later = [f"`{n}`" for n, *_ in departed[1:9]]
    notes = ["\n" + table] + ([f"departs afterwards: {', '.join(later)}"] if later else [])
    return fail(
        "E602",
        f"{what} `{name}` departs from PyTorch's: {text}",
        span,
        label="the first that departs",
        labels=tuple(Label(s, "departs as well") for _, s, *_ in departed[1:3]),
        notes=tuple(notes),
        help="if PyTorch is right, please report this program",
    ).diagnostic

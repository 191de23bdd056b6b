"""`isolate=True`: a program runs in a process of its own, as under the command; what comes back is
data: JSON, and arrays in NumPy's format. Nothing is unpickled.

The process is kept for further calls of the same function, and replaced when it was lost. Calls
that run at the same time, in threads, have one each, and so have those of a forked process.
"""

from __future__ import annotations

import io
import json
import os
import select
import subprocess
import sys
import time
from dataclasses import fields
from typing import Any

import numpy as np

from .crash import crashed
from .defaults import MAX_MEMORY
from .ended import death, stubborn
from .errors import AutodiffError, Diagnostic, Label, fault
from .language.values.exceptions import Handed
from .outside import EXHAUSTED, OUTSIDE
from .source import Source, Span

GRACE = 1.0  # seconds that the process has to stop by itself after its time limit
START = """
import sys
sys.path[:] = sys.argv[1:]
from autodiff_cli import api, isolated
isolated.serve(api)
"""
LENGTH = 8  # bytes of the length of a message


class Isolated:
    """A function of a program, made with `options` and called in another process."""

    def __init__(
        self, source: Source, function: str, options: dict[str, Any], timeout: float | None
    ):
        self.idle: list[Other] = []
        if not hasattr(select, "poll"):
            raise fault("E203 isolate-true-needs-system")  # fmt: skip
        self.source = source
        self.request = {
            "function": function, "options": options, "text": source.text, "name": source.name,
            "timeout": timeout,
        }  # fmt: skip
        self.timeout = timeout

    def __reduce__(self) -> tuple[Any, ...]:
        made = self.request["function"], self.request["options"], self.timeout
        return Isolated, (self.source, *made)

    def __repr__(self) -> str:
        return f"<{self.request['function']} of {self.source.name} in a process of its own>"

    @Handed()
    def __call__(self, /, *args: Any, **arrays: Any) -> Any:
        """Call it; what the program does wrong is raised as here."""
        other = self._idle() or Other()
        try:
            reply = other.exchange(packed([self.request, list(args), arrays]), self.timeout)
        except BaseException:
            other.end()
            raise
        self.idle.append(other)
        if "error" in reply:
            raise self._failure(reply["error"])
        return reply["answer"]

    def close(self) -> None:
        """End the processes that no call uses."""
        while other := self._idle():
            other.end()

    __del__ = close

    def _idle(self) -> Other | None:
        """A process that nobody else uses; those that were there before a fork are the parent's."""
        while self.idle:
            other = self.idle.pop()
            if other.owner == os.getpid():
                return other
        return None

    def _failure(self, data: dict[str, Any]) -> AutodiffError:
        at = data["span"]
        data["span"] = None if at is None else Span(self.source, *at)
        data["labels"] = tuple(Label(Span(self.source, *at), text) for at, text in data["labels"])
        return AutodiffError(Diagnostic(**data))


class Other:
    """A process that answers requests."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.ready = False
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", START, *filter(None, sys.path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()

    def exchange(self, message: bytes, timeout: float | None) -> Any:
        """The answer to a message; after an error the process is of no more use."""
        assert self.process.stdin is not None
        try:
            if not self.ready:
                self.ready = bool(self._read(1, None, timeout))
            end = None if timeout is None else time.monotonic() + timeout + GRACE
            self.process.stdin.write(message)
            self.process.stdin.flush()
            size = int.from_bytes(self._read(LENGTH, end, timeout), "little")
            return unpacked(self._read(size, end, timeout))
        except (BrokenPipeError, EOFError):
            raise death(self.process.wait()) from None

    def _read(self, size: int, end: float | None, timeout: float | None) -> bytes:
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        ready = select.poll()
        ready.register(descriptor, select.POLLIN | select.POLLHUP)
        pieces = bytearray()
        while len(pieces) < size:
            wait = None if end is None else max(0.0, end - time.monotonic()) * 1000
            if not ready.poll(wait):
                raise stubborn(timeout, "timeout=")
            piece = os.read(descriptor, min(size - len(pieces), 1 << 24))
            if not piece:
                raise EOFError
            pieces += piece
        return bytes(pieces)


# -- the other process ----------------------------------------------------------------------------


def serve(api: Any) -> None:
    """Answer requests until there are no more."""
    OUTSIDE.attend()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed is no part of an answer
    sys.stdout = sys.stderr
    functions: dict[str, Any] = {}
    requests = sys.stdin.buffer
    answers.write(b"!")
    answers.flush()
    while head := requests.read(LENGTH):
        request, args, arrays = unpacked(requests.read(int.from_bytes(head, "little")))
        try:
            reply = {"answer": _answer(api, request, args, arrays, functions)}
        except AutodiffError as error:
            reply = {"error": _data(error.diagnostic, request["text"])}
        except MemoryError:
            os._exit(EXHAUSTED)
        except Exception as error:
            reply = {"error": _data(crashed(error).diagnostic, request["text"])}
        answers.write(packed(reply))
        answers.flush()


def _answer(api: Any, request: Any, args: list[Any], arrays: Any, functions: Any) -> Any:
    from .checks.deadline import deadline

    source = Source(request["text"], request["name"])
    make = getattr(api, request["function"])
    with deadline(request["timeout"], "timeout="):
        if request["function"] == "run":
            return make(source, **request["options"])
        if not functions:
            functions["f"] = make(source, **request["options"])
        OUTSIDE.bound(request["options"].get("max_memory", MAX_MEMORY))
        return functions["f"](*args, **arrays)


def _data(diagnostic: Diagnostic, text: str) -> dict[str, Any]:
    """A diagnostic, as far as its places are in the program."""

    def place(span: Span | None) -> Any:
        if span is None or span.source.text != text:
            return None
        return [span.start, span.end]

    labels = [(place(label.span), label.text) for label in diagnostic.labels]
    data = {field.name: getattr(diagnostic, field.name) for field in fields(diagnostic)}
    data |= {"span": place(diagnostic.span), "labels": [found for found in labels if found[0]]}
    return data


# -- values as data -------------------------------------------------------------------------------


def packed(value: Any) -> bytes:
    """A value as a message: its length, JSON, and its arrays in NumPy's format."""
    arrays: list[np.ndarray] = []
    tree = json.dumps(_tree(value, arrays)).encode()
    file = io.BytesIO()
    file.write(len(tree).to_bytes(LENGTH, "little") + tree)
    for array in arrays:
        np.save(file, array, allow_pickle=False)
    return file.tell().to_bytes(LENGTH, "little") + file.getvalue()


def unpacked(data: bytes) -> Any:
    """What a message without its length says."""
    size = LENGTH + int.from_bytes(data[:LENGTH], "little")
    file = io.BytesIO(data)
    file.seek(size)
    arrays = []
    while file.tell() < len(data):
        arrays.append(np.load(file))
    return _value(json.loads(data[LENGTH:size]), arrays)


def _tree(value: Any, arrays: list[np.ndarray]) -> Any:
    if value is None or type(value) in (bool, str, float):
        return value
    if type(value) is int:
        return {"int": hex(value)}  # of any length
    if isinstance(value, dict):
        return {"dict": [[name, _tree(one, arrays)] for name, one in value.items()]}
    if isinstance(value, list | tuple) and not _numeric(value):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_tree(one, arrays) for one in value]}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    try:
        arrays.append(np.asarray(value))
    except ValueError:  # a ragged list
        arrays.append(np.empty(0, object))
    if arrays[-1].dtype.hasobject:
        raise fault("E205 isolate-true-takes-gives", type(value).__name__)
    return {"array": len(arrays) - 1}


def _numeric(value: Any) -> bool:
    """A list that stands for an array: of numbers, or of such lists."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], int | float | list)


def _value(tree: Any, arrays: list[np.ndarray]) -> Any:
    if not isinstance(tree, dict):
        return tree
    ((kind, inside),) = tree.items()
    if kind == "int":
        return int(inside, 16)
    if kind == "array":
        return arrays[inside]
    if kind == "dict":
        return {name: _value(one, arrays) for name, one in inside}
    found = [_value(one, arrays) for one in inside]
    return tuple(found) if kind == "tuple" else found

"""Which argument of a call an E205 is about: the caret stands there and not under the whole call.

Invariant: the line of an error stays that of the call, where Python reports it too.
"""

from __future__ import annotations

import re

from ...errors import AutodiffError, Label
from ...graph.op import NUMPY_KEYWORDS
from ...source import Span
from ...suggest import suggest
from ..syntax import tree as syntax

_UNKNOWN = re.compile(r"unexpected keyword argument `(\w+)`")
_NAMED = re.compile(r"\bargument `(\w+)`")
_DTYPE = re.compile(r"must be a dtype .* not str '((?:float|int|uint)\d+|bool)'$")
_COUNT = re.compile(r"takes (\d+) (?:positional )?arguments? but (\d+) (?:were|was) given")
_SIGNATURE = re.compile(r"`[\w.]+\((.*?)\)`")


def marked(error: AutodiffError, tree: syntax.Call, before: int) -> AutodiffError:
    """Put the caret under the argument meant; `before` is the number of arguments that stand
    before the parentheses (the tensor of a method)."""
    unknown = _UNKNOWN.search(error.message)
    if unknown is not None:
        _suggest(error, unknown[1])
        return _at(error, tree, _keyword(tree, unknown[1], True), "no such argument")
    count = _COUNT.search(error.message)
    if count is not None:
        first = int(count[1]) - before
        extra = int(count[2]) - int(count[1])
        if 0 <= first < len(tree.args):
            span = tree.args[first].span.to(tree.args[-1].span)
            return _at(error, tree, span, "one too many" if extra == 1 else f"{extra} too many")
        return error
    named = _NAMED.search(error.message)
    if named is not None and "misses" not in error.message:
        if "must be a list or tuple of tensors, not a tensor" in error.message:
            _in_a_list(error, tree)
        dtype = _DTYPE.search(error.message)
        if dtype is not None:
            error.amend(helps=(f"write `torch.{dtype[1]}`",))
        place = _keyword(tree, named[1], False)
        if place is None:
            place = _positional(error, tree, named[1], before)
        return _at(error, tree, place, "")
    return error


def _at(error: AutodiffError, tree: syntax.Call, span: Span | None, text: str) -> AutodiffError:
    if span is None:
        return error
    if span.line != tree.span.line:
        return error.amend(labels=(*error.diagnostic.labels, Label(span, text or "this argument")))
    labels = tuple(label for label in error.diagnostic.labels if label.span != span)
    return error.amend(span=span, label=text, labels=labels)


def _keyword(tree: syntax.Call, name: str, whole: bool) -> Span | None:
    for keyword in tree.keywords:
        if keyword.name is not None and name in (keyword.name, NUMPY_KEYWORDS.get(keyword.name)):
            return keyword.span if whole else keyword.value.span
    return None


def _names(error: AutodiffError) -> list[str]:
    """The parameters of the signature that the advice shows."""
    for text in error.diagnostic.helps:
        found = _SIGNATURE.search(text)
        if found is not None:
            return re.findall(r"(?:^|, )\*{0,2}(\w+)", re.sub(r"=\([^)]*\)", "", found[1]))
        if text.startswith("it takes"):
            return re.findall(r"(\w+)=", text)
    return []


def _positional(error: AutodiffError, tree: syntax.Call, name: str, before: int) -> Span | None:
    at = error.position
    if at < 0:
        names = _names(error)
        at = names.index(name) if name in names else -1
    at -= before
    if 0 <= at < len(tree.args) and not any(isinstance(a, syntax.Starred) for a in tree.args):
        return tree.args[at].span
    if at < 0 and at == -before and isinstance(tree.func, syntax.Attribute):
        return tree.func.value.span
    return None


def _in_a_list(error: AutodiffError, tree: syntax.Call) -> None:
    """`torch.cat(x, y)` was meant to be `torch.cat([x, y])`."""
    tensors = syntax.Name | syntax.Attribute | syntax.Call | syntax.BinOp | syntax.Subscript
    names = [a.span.text for a in tree.args if isinstance(a, tensors)]
    if len(names) > 1:
        rest = "".join(f", {a.span.text}" for a in tree.args[len(names) :])
        call = f"`{tree.func.span.text}([{', '.join(names)}]{rest})`"
        error.amend(helps=(f"write {call}", *error.diagnostic.helps))


def _suggest(error: AutodiffError, name: str) -> None:
    close = suggest(name, _names(error))
    if close:
        error.amend(helps=(f"did you mean `{close[0]}=`?", *error.diagnostic.helps))

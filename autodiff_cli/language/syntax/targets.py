"""What may stand on the left of an assignment or after `del`."""

from __future__ import annotations

from ...errors import AutodiffError, fail, fault
from . import tree as s

_WORDS: dict[type, str] = {
    s.Call: "a call",
    s.Constant: "a literal",
    s.NumList: "a list of numbers",
    s.BinOp: "an expression",
    s.UnaryOp: "an expression",
    s.BoolOp: "an expression",
    s.Compare: "a comparison",
    s.IfExp: "a conditional expression",
    s.Lambda: "a lambda",
    s.JoinedStr: "a string",
    s.Dict: "a dict",
    s.Set: "a set",
    s.ListComp: "a comprehension",
    s.SetComp: "a comprehension",
    s.DictComp: "a comprehension",
    s.GeneratorExp: "a generator",
    s.Starred: "an unpacking",
}


def _refuse(node: s.Node, message: str, help: str) -> AutodiffError:
    return fail("E102", message, node.span, label="cannot be assigned to", help=help)


def check_target(node: s.Node, single: str = "") -> None:
    """Raise E102 unless `node` can be assigned to; `single` is an operator that wants one name."""
    kind = type(node)
    if kind in (s.Name, s.Attribute, s.Subscript):
        return
    shown = node.span.text[:40]
    if kind in (s.Tuple, s.List):
        if single:
            raise _refuse(
                node, f"`{single}` needs one target, not several", "write one statement for each"
            )
        _check_elements(node.elements)  # type: ignore[attr-defined]  # a Tuple or List
        return
    if kind is s.Starred:
        raise _refuse(node, f"`{shown}` must be in a list of targets", f"write `{shown}, = ...`")
    what = _WORDS.get(kind, "this")
    if kind is s.Constant and node.value in (True, False, None):  # type: ignore[attr-defined]  # by type
        what = f"`{shown}`"
    help = f"write a name on the left: `y = {shown}`, or `==` to compare"
    if kind is s.Call and all(isinstance(part, s.Name) for part in (node.func, *node.args)):  # type: ignore[attr-defined]  # of a Call
        help = f"write `y = {shown}`; or, to define a function, `def {shown}: return ...`"
    raise _refuse(node, f"cannot assign to {what}", help)


def _check_elements(elements: list[s.Node]) -> None:
    starred = False
    for element in elements:
        if type(element) is s.Starred:
            if starred:
                raise _refuse(element, "two starred targets in one list", "keep one `*` only")
            starred = True
            check_target(element.value)
        else:
            check_target(element)


def check_deletable(node: s.Node) -> None:
    """Raise E102 unless `node` can be deleted."""
    if type(node) in (s.Tuple, s.List):
        for element in node.elements:  # type: ignore[attr-defined]  # a Tuple or List
            check_deletable(element)
    elif type(node) not in (s.Name, s.Attribute, s.Subscript):
        what = _WORDS.get(type(node), "this")
        raise fault("E102 cannot-delete-what", what=what, span=node.span)

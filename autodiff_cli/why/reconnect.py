"""Repairs of gradients that are missing: tensors go back into the graph."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..language.syntax import tree as s
from ..source import Span
from .edits import Edit, Text, callee

LEAVING = frozenset({"detach", "item", "tolist", "numpy", "cpu", "detach_"})
COPYING = frozenset(
    {"tensor", "as_tensor", "from_numpy", "array", "asarray", "const", "stop_gradient", "Parameter",
     "float", "scalar_tensor", "float32", "float64"}
)  # fmt: skip
FACTORIES = frozenset(
    {"tensor", "zeros", "ones", "rand", "randn", "full", "arange", "linspace", "eye", "empty",
     "logspace", "zeros_like", "ones_like", "rand_like", "randn_like", "full_like", "Parameter"}
)  # fmt: skip
SWITCHES = frozenset({"no_grad", "inference_mode", "set_grad_enabled"})
# NumPy's names that PyTorch spells otherwise.
TORCH = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "arctan2": "atan2", "concatenate": "cat", "power": "pow", "fabs": "abs",
    "absolute": "abs",
}  # fmt: skip


# -- detached -------------------------------------------------------------------------------------


def attached(text: Text, span: Span | None, name: str) -> Iterator[str]:
    """Without what takes a value out of the graph: there, in its statement, everywhere."""
    node = text.at(span)
    if node is None:
        return
    here = _stripped(text, node)
    statement = text.statement(node)
    inside = [] if statement is None else list(s.walk(statement))
    yield from _filled(text, node)
    for outer in text.around(node, s.Call):
        if outer is not node and callee(outer) == "float":
            edit = _stripped(text, outer)
            if edit is not None:
                yield text.changed([edit])
    if here is not None:
        further = [e for e in _arrays(text) if not (here.start <= e.start < here.end)]
        outer = _as_torch(
            text, [n for n in inside if n.span.start <= here.start and here.end <= n.span.end], here
        )
        yield text.changed([here, *outer, *further])
        yield text.changed([here, *_as_torch(text, inside, here), *further])
    yield text.changed(_scrubbed(text, inside))
    yield text.changed(_scrubbed(text, text.nodes))


def _filled(text: Text, node: s.Node) -> Iterator[str]:
    """`full(size, value)` as a product, which has a slope."""
    for call in text.around(node, s.Call):
        if callee(call) == "full" and len(call.args) == 2:
            size, value = call.args
            product = f"{s.operand(_core(value))} * torch.ones({text.plain(size)})"
            yield text.put(call, product)


def _arrays(text: Text) -> list[Edit]:
    """Without `from_numpy`: what was an array is a tensor then."""
    return [
        text.replaced(call, s.operand(call.args[0]))
        for call in text.every(s.Call, lambda call: callee(call) == "from_numpy")
        if call.args
    ]


def _core(node: s.Node) -> s.Node:
    """The value behind calls and attributes that take it out of the graph."""
    value = _taken_from(node)
    return node if value is None else _core(value)


def _taken_from(node: s.Node) -> s.Node | None:
    """What a call or an attribute takes a value of, out of the graph."""
    if isinstance(node, s.Call) and isinstance(node.func, s.Attribute):
        name = node.func.attr
        if (name in LEAVING and not node.args) or name == "astype":
            return node.func.value
    if isinstance(node, s.Attribute) and node.attr == "data":
        return node.value
    return None


def _stripped(text: Text, node: s.Node) -> Edit | None:
    """The edit that leaves the value itself of an expression that takes it out of the graph."""
    core = _core(node)
    if core is not node:
        return text.replaced(node, s.operand(core))
    if isinstance(node, s.Call) and node.args and callee(node) in COPYING:
        inner = node.args[0]
        if isinstance(inner, s.List | s.ListComp | s.GeneratorExp):
            if isinstance(inner, s.List) and not any(
                isinstance(part, s.Name | s.Call | s.BinOp | s.Subscript | s.Attribute)
                for part in inner.elements
            ):
                return None
            return text.replaced(node, f"torch.stack({text.plain(inner)})")
        if isinstance(inner, s.JoinedStr):
            inner = next((p.value for p in inner.parts if isinstance(p, s.FormattedValue)), inner)
        if isinstance(inner, s.NumList | s.Constant | s.JoinedStr):
            return None
        return text.replaced(node, s.operand(_core(inner)))
    if isinstance(node, s.Call) and isinstance(node.func, s.Attribute):
        found = _as_torch(text, [node], None)
        return found[0] if found else None
    return None


def _as_torch(text: Text, nodes: list[s.Node], inside: Edit | None) -> list[Edit]:
    """Functions of numpy and math as those of torch; what lies inside an edit is left to it."""
    modules = text.names("numpy", "math")
    found = []
    for node in nodes:
        if not isinstance(node, s.Call) or not isinstance(node.func, s.Attribute):
            continue
        owner = node.func.value
        if not isinstance(owner, s.Name) or owner.id not in modules:
            continue
        if node.func.attr in ("array", "asarray"):
            continue
        place = node.func.span
        if inside is not None and inside.start <= place.start and place.end <= inside.end:
            continue
        name = TORCH.get(node.func.attr, node.func.attr)
        found.append(Edit(place.start, place.end, f"torch.{name}"))
    return found


def _scrubbed(text: Text, nodes: list[s.Node]) -> list[Edit]:
    """Every such edit in some nodes; of nested ones only pieces that do not overlap, so calls
    around values are taken apart from both ends."""
    edits: list[Edit] = []
    nodes = [n for n in nodes if isinstance(n, s.Call | s.Attribute) and not _printed(text, n)]
    for node in nodes:
        core = _core(node)
        if core is not node and not isinstance(text.parents.get(id(node)), s.Attribute):
            edits.append(Edit(core.span.end, node.span.end, ""))
        elif isinstance(node, s.Call) and node.args and callee(node) in COPYING:
            inner = node.args[0]
            named = any(isinstance(part, s.Name) for part in s.walk(inner))
            if not named or callee(node) == "Parameter":
                continue
            listed = isinstance(inner, s.List | s.ListComp)
            bare = isinstance(inner, s.Name | s.Call | s.Attribute | s.Subscript)
            head, tail = ("torch.stack(", ")") if listed else ("", "") if bare else ("(", ")")
            edits.append(Edit(node.span.start, inner.span.start, head))
            edits.append(Edit(inner.span.end, node.span.end, tail))
    return [*edits, *_as_torch(text, nodes, None)]


def _printed(text: Text, node: s.Node) -> bool:
    return any(callee(outer) in ("print", "append") for outer in text.around(node, s.Call))


# -- no_grad --------------------------------------------------------------------------------------


def _switches(node: s.Node) -> bool:
    return any(
        isinstance(part, s.Attribute | s.Name)
        and (part.attr if isinstance(part, s.Attribute) else part.id) in SWITCHES
        for part in s.walk(node)
    )


def with_gradients(text: Text, span: Span | None, name: str) -> Iterator[str]:
    """Out of the `with`, without the decorator, without the switch."""
    node = text.at(span)
    for block in text.around(node, s.With):
        if any(_switches(item.expr) for item in block.items):
            if len(block.items) == 1:
                edit = text.dedented(block)
                if edit is not None:
                    yield text.changed([edit])
            for item in block.items:
                if _switches(item.expr):
                    yield text.put(item.expr, "torch.enable_grad()")
    for function in text.around(node, s.FunctionDef):
        for decorator in function.decorators:
            if _switches(decorator):
                begin = text.source.line_start(decorator.span.start)
                end = text.text.find("\n", decorator.span.end) + 1
                yield text.changed([Edit(begin, end, "")])
    for call in text.every(s.Call, lambda call: callee(call) == "set_grad_enabled"):
        statement = text.statement(call)
        if isinstance(statement, s.ExprStmt):
            yield text.changed([text.removed(statement)])
        elif call.args:
            yield text.put(call.args[0], "True")
    everywhere = [
        text.replaced(call, "torch.enable_grad()")
        for call in text.every(s.Call, lambda call: callee(call) in ("no_grad", "inference_mode"))
    ]
    if everywhere:
        yield text.changed(everywhere)


# -- requires_grad --------------------------------------------------------------------------------


def requiring(text: Text, span: Span | None, name: str) -> Iterator[str]:
    """With requires_grad=True where the tensor is made, or on a line of its own."""
    node = text.at(span)
    statement = text.statement(node)
    if statement is None:
        return
    plain = text.plain(statement)
    if "requires_grad" in plain and "False" in plain:
        yield text.put(statement, plain.replace("False", "True"))
    if isinstance(statement, s.ExprStmt) and "requires_grad_" in plain:
        yield text.changed([text.removed(statement)])
    value = getattr(statement, "value", None)
    for call in dict.fromkeys((value, node)):
        if isinstance(call, s.Call):
            yield from _made_with(text, call)
    if name.isidentifier() and isinstance(statement, s.Assign | s.AnnAssign):
        yield text.changed([text.after(statement, f"{name}.requires_grad_()")])
        yield text.changed([text.after(statement, f"{name} = {name}.float().requires_grad_()")])


def _made_with(text: Text, call: s.Call) -> Iterator[str]:
    """The call of a factory with requires_grad=True, its whole numbers as floats."""
    function = callee(call)
    plain = text.plain(call)
    kind = r"(dtype\s*=\s*)(torch\.)?(int\d*|long|short|uint8|int)\b"
    if function in ("const", "stop_gradient") and call.args:
        yield text.put(call, text.plain(call.args[0]))
        inner = text.plain(call.args[0])
        yield text.put(call, f"tensor({inner}, requires_grad=True)")
        return
    if function not in FACTORIES:
        return
    argument = "requires_grad=True"
    for body in dict.fromkeys((plain, re.sub(kind, r"\1torch.float32", plain))):
        yield text.put(call, f"{body[:-1].rstrip().rstrip(',')}, {argument})")
    if call.args:
        first = call.args[0].span
        floats = re.sub(r"(?<![\w.])(\d+)(?![\w.])", r"\1.0", text.text[first.start : first.end])
        rest = re.sub(kind, r"\1torch.float32", text.text[first.end : call.span.end - 1])
        head = text.text[call.span.start : first.start]
        yield text.put(call, f"{head}{floats}{rest}, {argument})")


# -- not kept, rebound ----------------------------------------------------------------------------


def retained(text: Text, span: Span | None, name: str) -> Iterator[str]:
    """With retain_grad() after the name is bound, or before backward."""
    statement = text.statement(text.at(span))
    if name.isidentifier() and statement is not None and not isinstance(statement, s.For | s.With):
        yield text.changed([text.after(statement, f"{name}.retain_grad()")])
    for call in text.every(s.Call, lambda call: callee(call) == "backward"):
        before = text.statement(call)
        if before is not None:
            yield text.changed([text.before(before, f"{name}.retain_grad()")])


def renamed(text: Text, span: Span | None, name: str) -> Iterator[str]:
    """The update in place, or the later tensor under a name of its own."""
    statement = text.statement(text.at(span))
    if not isinstance(statement, s.Assign) or not name.isidentifier():
        return
    value = statement.value
    while isinstance(value, s.Call) and callee(value) in ("detach", "requires_grad_", "clone"):
        if not isinstance(value.func, s.Attribute):
            break
        value = value.func.value
    if isinstance(value, s.BinOp) and value.op in "+-*/":
        left = value.left
        if isinstance(left, s.Name) and left.id == name:
            update = f"{name} {value.op}= {text.plain(value.right)}"
            yield text.put(statement, update)
            indent = text._indent(statement.span.start)
            if indent is not None:
                block = f"with torch.no_grad():\n{indent}    {update}"
                yield text.put(statement, block)
    used = {node.id for node in text.nodes if isinstance(node, s.Name)}
    other = next(n for n in (f"{name}_new", f"{name}_later", f"{name}_2_") if n not in used)
    after = statement.span.end
    edits = [
        text.replaced(node, other)
        for node in text.nodes
        if isinstance(node, s.Name)
        and node.id == name
        and (node.span.start >= after or any(node is target for target in statement.targets))
    ]
    yield text.changed(edits)

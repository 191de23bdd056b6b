"""Repairs that keep values and slopes finite: stable forms of well-known formulas, safe operands
inside `where`, bounds and small additions at the operand that is out of range."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..language.errors.domains import domain_of
from ..language.syntax import tree as s
from ..source import Span
from .edits import Edit, Text, callee

# What is tried where the bounds of the domain do not help, or there is none.
FURTHER = {
    "log": "min=1e-6", "reciprocal": "min=1e-6", "pow": "min=1e-6", "exp": "max=10",
    "lgamma": "min=1e-6", "digamma": "min=1e-6",
}  # fmt: skip
INFINITIES = re.compile(
    r"-\s*(?:float\(\s*['\"]inf(?:inity)?['\"]\s*\)|(?:torch|math|np|numpy)\.inf\b|\binf\b)"
    r"|float\(\s*['\"]-inf(?:inity)?['\"]\s*\)"
)


def bounds_of(name: str) -> list[str]:
    """Arguments of `clamp` that keep an operand where value and slope are finite."""
    domain = domain_of(name.replace("arc", "a"), "float32")
    own = [] if domain is None else [domain.clamp]
    return [*own, FURTHER[name]] if name in FURTHER else own


def operand_of(node: s.Node) -> s.Node | None:
    """What a call or operator is applied to: the receiver of a method, the first argument of a
    function."""
    if isinstance(node, s.Call):
        if isinstance(node.func, s.Attribute) and not is_namespace(node.func.value):
            return node.func.value
        return node.args[0] if node.args else None
    if isinstance(node, s.BinOp):
        return node.right if node.op in "/%//" else node.left
    return node.operand if isinstance(node, s.UnaryOp) else None


def is_namespace(node: s.Node) -> bool:
    """Whether an expression can only be a module: `torch`, `F`, `torch.nn.functional`."""
    while isinstance(node, s.Attribute):
        node = node.value
    return isinstance(node, s.Name) and node.id in (
        "torch", "F", "np", "numpy", "math", "nn", "special", "linalg", "functional",
    )  # fmt: skip


def kept(text: Text, span: Span | None, name: str) -> Iterator[str]:
    """Candidates for an expression whose value or slope is not finite."""
    node = text.at(span)
    if node is None:
        return
    yield from rewritten(text, span, name)
    yield from _safe_in_where(text, node)
    if INFINITIES.search(text.text):
        yield INFINITIES.sub("-1e9", text.text)
    yield from _bounded(text, node)
    yield from _other_ways(text, node)


# -- stable forms ---------------------------------------------------------------------------------


def rewritten(text: Text, span: Span | None, name: str) -> Iterator[str]:
    """Formulas around the expression in the form that stays finite."""
    node = text.at(span)
    statement = text.statement(node)
    nodes = [] if statement is None else list(s.walk(statement))
    chosen = [*text.around(node), *nodes, *text.nodes]
    seen: set[int] = set()
    for candidate in chosen:
        if id(candidate) in seen:
            continue
        seen.add(id(candidate))
        form = _stable(text, candidate)
        if form is not None:
            yield text.put(candidate, form)


def _stable(text: Text, node: s.Node) -> str | None:
    """The stable form of an expression that is written out by hand."""
    if isinstance(node, s.BinOp) and node.op == "/":
        return _quotient(text, node)
    if not isinstance(node, s.Call):
        return None
    name, inner = callee(node), operand_of(node)
    if name == "log" and inner is not None:
        return _log_of(text, _meant(text, inner))
    if name == "binary_cross_entropy" and node.args:
        first = _meant(text, node.args[0])
        if callee(first) == "sigmoid":
            logits = text.plain(operand_of(first) or first)
            plain = text.plain(node)
            start = node.args[0].span.start - node.span.start
            end = node.args[0].span.end - node.span.start
            changed = plain[:start] + logits + plain[end:]
            return changed.replace("binary_cross_entropy", "binary_cross_entropy_with_logits", 1)
    return None


def _meant(text: Text, node: s.Node) -> s.Node:
    """What a name stands for that is assigned once; other expressions as they are."""
    for _ in range(3):
        if not isinstance(node, s.Name):
            return node
        name = node.id
        found = [
            assign.value
            for assign in text.every(s.Assign)
            if any(isinstance(t, s.Name) and t.id == name for t in assign.targets)
        ]
        if len(found) != 1:
            return node
        node = found[0]
    return node


def _log_of(text: Text, inner: s.Node) -> str | None:
    """`log` of a sum of exponentials, of softmax or sigmoid, of one plus or minus those."""
    functional = "torch.nn.functional." if text.python else ""
    name = callee(inner)
    argument = operand_of(inner) if isinstance(inner, s.Call) else None
    if name == "sum" and argument is not None:
        powers = _meant(text, argument)
        if callee(powers) == "exp":
            return _logsumexp(text, inner, argument, powers)
    if name == "sigmoid" and argument is not None:
        return f"{functional}logsigmoid({text.plain(argument)})"
    if name == "softmax" and isinstance(inner, s.Call):
        return text.plain(inner).replace("softmax", "log_softmax", 1)
    if isinstance(inner, s.Subscript):
        whole = _meant(text, inner.value)
        if callee(whole) == "softmax":
            index = text.text[inner.value.span.end : inner.span.end]
            return text.plain(whole).replace("softmax", "log_softmax", 1) + index
    if isinstance(inner, s.BinOp) and (_is_one(inner.left) or _is_one(inner.right)):
        other = _meant(text, inner.right if _is_one(inner.left) else inner.left)
        value = operand_of(other) if isinstance(other, s.Call) else None
        if value is not None and inner.op == "+" and callee(other) == "exp":
            return f"{functional}softplus({text.plain(value)})"
        one_minus = inner.op == "-" and _is_one(inner.left)
        if value is not None and one_minus and callee(other) == "sigmoid":
            return f"{functional}logsigmoid(-{s.operand(value)})"
    if isinstance(inner, s.BinOp) and inner.op == "/":
        quotient = _quotient(text, inner)
        if quotient is not None and "softmax(" in quotient:
            return quotient.replace("softmax(", "log_softmax(", 1)
    return None


def _logsumexp(text: Text, total: s.Node, summed: s.Node, powers: s.Node) -> str | None:
    value = operand_of(powers)
    if value is None or not isinstance(total, s.Call):
        return None
    rest = text.text[summed.span.end : total.span.end - 1]
    if isinstance(total.func, s.Attribute) and total.func.value is summed:
        rest = text.text[total.func.span.end : total.span.end - 1].lstrip().removeprefix("(")
        rest = f", {rest}" if rest.strip() else ""
    if not rest.strip(" ,"):
        return f"torch.logsumexp({s.operand(value)}.flatten(), dim=0)"
    return f"torch.logsumexp({text.plain(value)}{rest})"


def _is_one(node: s.Node) -> bool:
    return isinstance(node, s.Constant) and node.value == 1


def _quotient(text: Text, node: s.BinOp) -> str | None:
    """`exp(x) / exp(x).sum(...)` and `1 / (1 + exp(-x))`."""
    above, below = _meant(text, node.left), _meant(text, node.right)
    if _is_one(node.left) and isinstance(below, s.BinOp) and below.op == "+":
        sides = [below.left, below.right]
        powers = next((side for side in sides if callee(_meant(text, side)) == "exp"), None)
        if powers is not None and any(_is_one(side) for side in sides):
            value = operand_of(_meant(text, powers))
            if isinstance(value, s.UnaryOp) and value.op == "-":
                return f"torch.sigmoid({text.plain(value.operand)})"
            if value is not None:
                return f"torch.sigmoid(-{s.operand(value)})"
    if callee(above) == "exp" and callee(below) == "sum" and isinstance(below, s.Call):
        summed = operand_of(below)
        value = operand_of(above)
        if summed is None or value is None:
            return None
        powers = _meant(text, summed)
        if callee(powers) == "exp" and text.plain(operand_of(powers) or powers) == text.plain(
            value
        ):
            return _softmax(text, below, summed, value)
    return None


def _softmax(text: Text, total: s.Call, summed: s.Node, value: s.Node) -> str | None:
    """Along the dim of a sum that it leaves in place, or that is the first; of a sum of all
    elements, of all of them."""
    method = isinstance(total.func, s.Attribute) and total.func.value is summed
    given = [text.plain(arg) for arg in total.args[not method :]]
    named = {k.name: text.plain(k.value) for k in total.keywords}
    dim = given[0] if given else named.get("dim", named.get("axis"))
    if dim is None and text.python and isinstance(total.func, s.Name):
        dim = "0"  # Python's own
    if dim is None:
        return f"torch.softmax({s.operand(value)}.flatten(), dim=0).view_as({text.plain(value)})"
    keeps = "True" in (*given[1:], named.get("keepdim"), named.get("keepdims"))
    return f"torch.softmax({text.plain(value)}, dim={dim})" if keeps or dim == "0" else None


# -- where ----------------------------------------------------------------------------------------


def _safe_in_where(text: Text, node: s.Node) -> Iterator[str]:
    """The operand replaced where it is not chosen anyway: the double `where`."""
    operand = operand_of(node)
    if operand is None:
        return
    for choice in text.every(s.Call, lambda call: callee(call) == "where"):
        arguments = choice.args
        if isinstance(choice.func, s.Attribute) and not is_namespace(choice.func.value):
            arguments = [arguments[0], choice.func.value, *arguments[1:]] if arguments else []
        if len(arguments) != 3:
            continue
        condition = text.plain(arguments[0])
        if any(_within(text, node, branch) for branch in arguments[1:2]):
            order = "{value}, {one}"
        elif _within(text, node, arguments[2]):
            order = "{one}, {value}"
        else:
            continue
        value = text.plain(operand)
        parts = order.format(value=value, one=f"torch.ones_like({value})")
        yield text.put(operand, f"torch.where({condition}, {parts})")


def _within(text: Text, node: s.Node, branch: s.Node) -> bool:
    """Whether an expression is part of a branch, or of what the branch's names stand for."""
    for part in s.walk(branch):
        if part is node or any(inner is node for inner in s.walk(_meant(text, part))):
            return True
    return False


# -- bounds ---------------------------------------------------------------------------------------


def _bounded(text: Text, node: s.Node) -> Iterator[str]:
    """The operand held where value and slope are finite, or moved by a little."""
    operand = operand_of(node)
    if operand is None or isinstance(operand, s.List | s.NumList):
        return
    value = s.operand(operand)
    bounds: list[str] = []
    if isinstance(node, s.Call):
        bounds = bounds_of(callee(node))
    elif isinstance(node, s.BinOp) and node.op == "/":
        yield text.put(operand, f"{value}.clamp(min=1e-12)")
        for small in ("1e-6", "1e-3"):
            yield text.put(operand, f"({text.plain(operand)} + {small})")
    elif isinstance(node, s.BinOp) and node.op == "**":
        bounds = ["min=1e-12", "min=1e-6"]
    for bound in bounds:
        yield text.put(operand, f"{value}.clamp({bound})")
    for change in ("{}.clamp(min=1e-6)", "({} + 1e-6)", "{}.clamp(min=-1e4, max=1e4)",
                   "{}.clamp(min=-80, max=80)"):  # fmt: skip
        yield text.put(operand, change.format(value))


def _other_ways(text: Text, node: s.Node) -> Iterator[str]:
    """`std` with eps, wider numbers, data without NaN, and the operands further inside."""
    name = callee(node)
    operand = operand_of(node)
    if name == "std" and operand is not None:
        plain = text.plain(node)
        variance = re.sub(r"\bstd\b", "var", plain, count=1)
        biased = re.sub(r"\)$", f"{'' if plain.endswith('()') else ', '}unbiased=False)", variance)
        yield text.put(node, f"({variance} + 1e-12).sqrt()")
        yield text.put(node, f"({biased} + 1e-12).sqrt()")
    if name == "var" and operand is not None:
        plain = text.plain(node)
        comma = "" if plain.endswith("()") else ", "
        yield text.put(node, f"{plain[:-1]}{comma}unbiased=False)")
    if name == "mean" and operand is not None:
        value = s.operand(operand)
        yield text.put(node, f"({value}.sum() / max({value}.numel(), 1))")
    if name in ("tensor", "array"):
        yield text.put(node, f"torch.nan_to_num({text.plain(node)})")
    for part in s.walk(node):
        inner = operand_of(part) if part is not node else None
        if inner is not None and isinstance(part, s.Call | s.BinOp):
            bounds = bounds_of(callee(part)) if isinstance(part, s.Call) else []
            for bound in bounds:
                yield text.put(inner, f"{s.operand(inner)}.clamp({bound})")
            if isinstance(part, s.BinOp) and part.op == "/":
                yield text.put(inner, f"({text.plain(inner)} + 1e-6)")
    yield from _wider(text)


def _wider(text: Text) -> Iterator[str]:
    """Everything in float64, after the imports."""
    imports = [n for n in text.tree.body if isinstance(n, s.Import | s.ImportFrom)]
    if not imports or "float64" in text.text:
        return
    last: s.Node = imports[-1]
    edit: Edit = text.after(last, "torch.set_default_dtype(torch.float64)")
    yield text.changed([edit])

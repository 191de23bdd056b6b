"""Graphs as PyTorch source that a person reads: operators, numbers where they stand, expressions of
a line.

Where the slope of a result is not that of PyTorch's function (backward functions of a program's
own, hooks), the result is cut off: PyTorch differentiates down to it, what the program gave to what
is below is written, and PyTorch goes on from there.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from ..graph import op as ops
from ..graph.node import Node
from ..graph.op import value_of
from ..graph.shapes import broadcast_shapes
from ..graph.walk import bodies, bottom_up, walk
from ..suggest import free_name
from .kernel_source import Substitution
from .numpy_source import INLINE, LONGEST, is_given, is_neutral, pairs_of
from .torch_source import METHOD, Call, Made, TorchSource, literal
from .value_source import array_text, expression, number_text, uniform, weak_text

INFIX = {
    "add": "a + b", "sub": "a - b", "mul": "a * b", "div": "a / b", "neg": "-a", "pow": "a ** b",
    "rsub": "b - a", "gt": "a > b",
    "ge": "a >= b", "lt": "a < b", "le": "a <= b", "eq": "a == b", "ne": "a != b",
    "bitwise_and": "a & b", "bitwise_or": "a | b", "bitwise_xor": "a ^ b", "bitwise_not": "~a",
}  # fmt: skip
MATRICES = {"matmul": "a @ b", "mm": "a @ b", "mv": "a @ b"}
TAKE_NUMBERS = (*INFIX, "where", "clamp", "masked_fill", "fill", "lerp", "xlogy")
UNPACKED = ("view", "reshape", "permute", "expand")  # what is given sizes or dims one by one


class Turn(NamedTuple):
    """A node where a backward pass leaves PyTorch's rules: the gradient that arrives there, if it
    is one result, and what the program gives to whom; to the node itself: before hooks saw it."""

    node: Node
    arrived: Node | None
    given: list[tuple[Node, Node]]


def has_own_rule(node: Node) -> bool:
    """Whether a program wrote the rule of a node, or attached hooks to it."""
    context = node.marks.context if node.marks is not None else None
    hooked = context is not None and bool(context.before or context.after)
    return hooked or "own saving" in node.op.properties


class TorchText(TorchSource):
    """Source with the names of `called`, of which `given` are arguments, for what is in `roots`."""

    def __init__(
        self, made: dict[Node, Made], called: Mapping[Node, str], given: Iterable[Node],
        taken: Iterable[str], roots: Iterable[Node], turns: Sequence[Turn],
    ):  # fmt: skip
        super().__init__(made, dict(called))
        self.taken = {*taken, *called.values()}
        self.names = {node: expression(called[node]) for node in given}
        self.turns = turns
        self._before: dict[Node, Any] = {}  # what was cut off, as it was before
        self._forward = True
        self._calls: dict[Any, Call] = {}
        self._cuts = {turn.node for turn in turns if turn.arrived is not None}
        roots = [*roots, *(n for turn in turns for n, _ in turn.given)]
        passes = 1
        for turn in reversed(turns):
            roots += [g for _, g in turn.given] * passes  # each further pass starts from it
            passes += turn.arrived is not None
        self._uses = Counter[Any](roots)
        self._recorded: set[Any] = set()  # what PyTorch would differentiate, as it is written
        self._read: set[Any] = set(roots)  # by what it should differentiate
        ends = {*self.names, *(turn.arrived for turn in turns)}
        self._fixed = dict.fromkeys(ends, False)  # whether it depends on no argument
        for thing in walk(roots, lambda thing: () if thing in ends else self._call(thing).needs()):
            if thing in ends:
                continue
            call = self._call(thing)
            needs = call.needs()
            self._uses.update(needs)
            cut = type(thing) is Node and (thing.op is ops.LEAF or not thing.requires_grad)
            if not cut and call.path != "detach":
                self._read.update(needs)
            if thing in self._called.keys() - self._cuts and not call.path and len(call.args) == 1:
                self._called.setdefault(call.args[0], self._called[thing])

    def text(self, node: Node) -> str:
        """The expression of a node; what it reads is written first."""
        return ast.unparse(self.name(node))

    def passes(
        self, seeds: list[tuple[Node, Node]], gradients: Mapping[str, tuple[Node, Node]]
    ) -> None:
        """Write the passes, the gradients by name, and the return of those."""
        one = all(not node.shape and bool(value_of(weight) == 1) for node, weight in seeds)
        starts = [self.text(node) for node, _ in seeds]
        given = ["None" if one else self.text(weight) for _, weight in seeds]
        result = starts[0]
        self._forward = False

        def passed(to: str, rest: str) -> str:
            first = starts[0] if len(starts) == 1 else f"[{', '.join(starts)}]"
            by = given[0] if len(given) == 1 else f"[{', '.join(given)}]"
            by = "" if all(text == "None" for text in given) else f", {by}"
            return f"torch.autograd.grad({first}, {to}{by}{rest})"

        for node, arrived, further in self.turns:
            if arrived is not None and arrived not in self.names:
                at = self.text(node)
                name = ast.unparse(self._before.get(node) or self.name(node))
                name = free_name(f"grad_{name}", self.taken)
                self.lines.append(f"({name},) = {passed(at, ', retain_graph=True')}")
                self.names[arrived] = expression(name)
            for target, g in further:
                before = self._before[node] if target is node else self.name(target)
                starts.append(ast.unparse(before))
                given.append(self.text(g))
        own = {name: self.text(g) for name, (node, g) in gradients.items() if node in self._cuts}
        found = [f"{name!r}: {text}" for name, text in own.items()]
        rest = {name: pair for name, pair in gradients.items() if name not in own}
        if rest:
            to = f"[{', '.join(self.text(node) for node, _ in rest.values())}]"
            zero = not all(value_of(g).any() for _, g in rest.values())
            self.lines.append(f"gradients = {passed(to, ', materialize_grads=True' * zero)}")
            found.insert(0, f"**dict(zip({list(rest)}, gradients))")
        shown = f"{{{', '.join(found)}}}" if own else found[0].removeprefix("**")
        self.lines.append(f"return {result}, {shown}")

    # -- what a node is ---------------------------------------------------------------------------

    def _call(self, thing: Any) -> Call:
        if thing not in self._calls:
            self._calls[thing] = self._made_by(thing)
        return self._calls[thing]

    def _made_by(self, thing: Any) -> Call:
        value = _own_value(thing)
        if value is not None:
            return Call("detach", (value,), {})
        if type(thing) is Node:
            if thing.op is ops.LEAF and not is_given(thing):
                return Call("", bodies(thing) or thing.inputs, {})
            if self._is_number(thing):
                return Call("", (), {})
        made = self._made.get(thing)
        if made is not None and made.op is None:  # PyTorch would not differentiate it by its rules
            within = walk([node for node, _ in made.args[0]], lambda node: node.inputs)
            if any(map(has_own_rule, within)):
                del self._made[thing]
        call = super()._call(thing)
        same = self._same(thing, call) if type(thing) is Node else None
        return call if same is None else Call("", (same,), {})

    def _same(self, node: Node, call: Call) -> Node | None:
        """The argument that a call gives back as it is."""
        path = call.path.removeprefix(METHOD)
        whole = path in UNPACKED and (path != "permute" or call.args[1] == tuple(range(node.ndim)))
        pairs = [(call.args[0], None)] if whole else pairs_of(node)
        for of, other in pairs if node not in self._cuts else ():
            if (
                type(of) is Node
                and (of.shape, of.dtype) == (node.shape, node.dtype)
                and (other is None or (self._is_number(other) and is_neutral(other, node)))
            ):
                return of
        return None

    def _is_number(self, node: Node) -> bool:
        """Whether a node without a name is one number, or that many times, for all arguments."""
        for part in bottom_up(node, _below, self._fixed):
            self._fixed[part] = all(self._fixed[n] for n in _below(part))
        return self._fixed[node] and node not in self._called and _uniform(node)

    def _write(self, thing: Any, call: Call) -> None:
        if not call.args and not call.path:
            self.names[thing] = self._constant(thing)
            return
        tree = self._tree(call)
        node = type(thing) is Node
        own = _own_value(thing) is not None
        cuts = thing in self._cuts
        if not node or thing.requires_grad:
            self._recorded.add(thing)
        elif (
            self._forward
            and thing.dtype.kind == "f"
            and not self._recorded.isdisjoint(call.needs())
        ):
            if thing in self._read and call.path != "detach":
                tree = _method(tree, "detach")
            elif call.path != "detach":
                self._recorded.add(thing)
        if own and cuts:
            tree = _method(tree, "requires_grad_")
        name = self._called.get(thing)
        text = ast.unparse(tree)
        short = name is None and self._uses[thing] < 2 and len(text) <= LONGEST
        if (short or isinstance(tree, ast.Name)) and not cuts:
            self.names[thing] = tree
            return
        name = name or self._free()
        shape = f"  # {thing.shape}" if node and thing.shape else ""
        self.lines.append(f"{name} = {text}{shape}")
        self.names[thing] = expression(name)
        if cuts and not own:
            self._before[thing] = self.names[thing]
            seen = free_name(f"{name}_seen", self.taken)
            self.lines.append(f"{seen} = {name}.detach().requires_grad_()")
            self.names[thing] = expression(seen)

    def _free(self) -> str:
        return free_name(next(f"v{n}" for n in count(1) if f"v{n}" not in self.taken), self.taken)

    def _constant(self, node: Node) -> Any:
        array = np.asarray(value_of(node))
        if _uniform(node) or (array.size <= INLINE and self._uses[node] < 2):
            return expression(array_text(array, "torch."))
        name = free_name(f"C{len(self.data) + 1}", self.taken)
        self.data[name] = array
        return expression(name)

    def _tree(self, call: Call) -> Any:
        """The expression of a call."""
        path = call.path.removeprefix(METHOD)
        args = call.args
        nodes = [arg for arg in args if type(arg) is Node]
        numbers = [node for node in nodes if self._is_number(node)]
        beside = [n for n in nodes if n not in numbers and n.dtype.kind != "b"]
        beside = beside if path in TAKE_NUMBERS else []
        places: dict[Any, str] = {}
        given: dict[str, Any] = {}
        for node in call.needs():
            places[node] = name = f"_{len(places)}"
            given[name] = self.names[node]
            if node in numbers and beside and (text := _number_beside(node, beside[0])):
                given[name] = expression(text)
            elif path in ("add", "mul", "div") and _is_promoted(node, nodes):
                given[name] = _cast_away(given[name])
        form = (INFIX | MATRICES).get(path, "") if not call.named else ""
        if form:
            sides = zip("ab", args, strict=False)
            trees = {letter: expression(literal(arg, places)) for letter, arg in sides}
            tree = Substitution(trees).visit(expression(form))
        else:
            tree = expression(call.text(places))
        return _Shorter().visit(Substitution(given).visit(tree))


class _Shorter(ast.NodeTransformer):
    """What a person writes shorter: `x[1:]`, `x[0]` for a `select`, `x.T`, sizes one by one."""

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        parts = [_slice(part) for part in parts]
        node.slice = parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        function: Any = node.func
        if not isinstance(function, ast.Attribute) or node.keywords:
            return node
        of: Any = function.value
        args = node.args
        if function.attr == "select":
            dim, index = (int(ast.unparse(arg)) for arg in args)
            form = expression(f"a[{':, ' * dim}{index}]")
            return Substitution({"a": of}).visit(form)
        if function.attr == "permute" and ast.unparse(args[0]) == "(1, 0)":
            turned = isinstance(of, ast.Call) and getattr(of.func, "attr", "") == "t"
            return of.func.value if turned else ast.Attribute(of, "T", ast.Load())
        if function.attr in UNPACKED and len(args) == 1 and isinstance(args[0], ast.Tuple):
            node.args = args[0].elts or args
        return node


def _slice(part: Any) -> Any:
    if not (isinstance(part, ast.Call) and ast.unparse(part.func) == "slice"):
        return part
    ends = [
        None if ast.unparse(end) in ("None", plain) else end
        for end, plain in zip(part.args, ("0", "", "1"), strict=True)
    ]
    return ast.Slice(*ends)


def _below(node: Node) -> tuple[Node, ...]:
    return (*bodies(node), *node.inputs)


def _uniform(node: Node) -> bool:
    """Whether a node is one number, or that many times."""
    array = np.asarray(value_of(node))
    return not array.ndim or uniform(array)


def _number_beside(node: Node, other: Node) -> str:
    """What a node that is one number can be written as beside another; nothing where it decides
    the dtype or the shape of what comes out."""
    if node.weak and not node.inputs:
        real = node.dtype.kind == "f" != other.dtype.kind
        text = weak_text(node).replace("np.", "torch.")
        return repr(float(text)) if real else text
    if node.dtype != other.dtype or broadcast_shapes(node.shape, other.shape) != other.shape:
        return ""
    return number_text(np.asarray(value_of(node)).flat[0]).replace("np.", "torch.")


def _cast_away(tree: Any) -> Any:
    """`x` for `x.to(dtype)`, which PyTorch does by itself."""
    function: Any = tree.func if isinstance(tree, ast.Call) else None
    return tree if function is None else function.value


def _is_promoted(node: Any, nodes: list[Node]) -> bool:
    """Whether a node is one of integers in the dtype of what stands beside it."""
    whole = type(node) is Node and node.op is ops.CAST and node.args[0].dtype.kind in "bi"
    return whole and any(
        n.op is not ops.CAST and n.dtype == node.dtype and not n.weak for n in nodes
    )


def _own_value(thing: Any) -> Node | None:
    """What the forward function of a program gave as this result."""
    if type(thing) is not Node:
        return None
    node, at = (thing.args[0], thing.args[1]) if thing.op is ops.OUTPUT else (thing, 0)
    found: Node | None = node.args[1][at] if "own saving" in node.op.properties else None
    return found


def _method(tree: Any, name: str) -> Any:
    return ast.Call(ast.Attribute(tree, name, ast.Load()), [], [])

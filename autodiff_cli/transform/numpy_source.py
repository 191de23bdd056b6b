"""Graphs as NumPy source: an expression a node, nested where nothing else reads it.

What an op is in NumPy is found in this order: the text in its block (`numpy=`), what its properties
say of it, and its kernel, which is a ufunc, an expression, or a function that is copied with all
that it calls. Invariant: what is written reads nothing of this package and nothing of a program's
text but names that `Names` made.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import cache
from importlib import import_module
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ..errors import fault
from ..graph import op as ops
from ..graph.kinds import Kind
from ..graph.node import Node
from ..graph.op import Op, value_of
from ..graph.registry import F
from ..graph.walk import SEQUENCE, bodies, walk
from .jax_source import changes_arrays, in_jax
from .simplify import representatives
from .torch_source import GraphSource, nodes_in

INLINE = 16  # elements of a constant that is written where it is read
LONGEST = 72  # characters of an expression that is written where it is read
INFIX = {
    np.add: "a + b", np.subtract: "a - b", np.multiply: "a * b", np.true_divide: "a / b",
    np.negative: "-a", np.greater: "a > b", np.greater_equal: "a >= b", np.less: "a < b",
    np.less_equal: "a <= b", np.equal: "a == b", np.not_equal: "a != b",
}  # fmt: skip
NEUTRAL: dict[Any, int] = {np.add: 0, np.subtract: 0, np.multiply: 1, np.true_divide: 1}
NOT_FINITE = ("np.inf", "np.nan")
SOURCES = (ops.LEAF, ops.CONSTANT)


class NoText(Exception):
    """Something of a kernel that cannot be written, in words that follow a colon."""


def expression(text: str) -> Any:
    """The tree of an expression."""
    if text.isidentifier() and text not in ("None", "True", "False"):
        return ast.Name(text, ast.Load())
    return ast.parse(text, mode="eval").body


def is_given(node: Node) -> bool:
    """Whether a node is what its value is: a leaf or a constant; not a view that was made where
    no gradients are kept."""
    shows = node.op is ops.LEAF and not getattr(node.args[0], "kept", True)
    return node.op in SOURCES and not shows


def number_text(value: Any) -> str:
    """A number of an array, as short as its dtype allows."""
    if isinstance(value, np.floating):
        return str(value) if np.isfinite(value) else f"np.{value}".replace("np.-", "-np.")
    return repr(value.item() if isinstance(value, np.generic) else value)


def weak_text(node: Node) -> str:
    """The number of a weak node: 2 and 2.0 are one node, whichever was there before."""
    value = node.args[0]
    if node.dtype.kind == "f":
        number = np.float64(value)
        whole = abs(number) < 1e15 and str(np.float64(int(number))) == str(number)
        value = int(number) if whole else number
    return number_text(value)


def array_text(array: np.ndarray, library: str = "np.") -> str:
    """An array as the call that makes it."""
    make, real = ("array", np.float64) if library == "np." else ("tensor", np.float32)
    plain = array.dtype in (real, np.int64, np.bool_)
    tail = "" if plain else f", dtype={library}{array.dtype}"
    if array.ndim and array.size > 1 and (array == array.flat[0]).all():
        value = array.flat[0]
        if value in (0, 1) and array.dtype.kind == "f":
            return f"{library}{'ones' if value else 'zeros'}({array.shape}{tail})"
        return f"{library}full({array.shape}, {number_text(value)}{tail})"
    if not array.size:
        return f"{library}zeros({array.shape}, dtype={library}{array.dtype})"

    def rows(part: Any) -> str:
        if not part.ndim:
            return number_text(part[()]).replace("np.", library)
        return f"[{', '.join(map(rows, part))}]"

    return f"{library}{make}({rows(array)}{tail})"


def pairs_of(node: Node) -> Sequence[tuple[Node, Node]]:
    """The operands of a sum or a product with the one beside each, where it may be neutral."""
    if node.op.kernel not in NEUTRAL:
        return ()
    a, b = node.inputs
    return ((a, b), (b, a)) if node.op.kernel in (np.add, np.multiply) else ((a, b),)


def is_neutral(other: Node, node: Node) -> bool:
    """Whether an operand of a sum or a product changes nothing in it."""
    return bool((value_of(other) == NEUTRAL[node.op.kernel]).all())


class Graph:
    """The graph below some nodes without what only the engine needs: composites are their bodies,
    equal nodes are one, what depends on no input is its value."""

    def __init__(self, roots: Iterable[Node], inputs: Iterable[Node], ends: Iterable[Node]):
        self.inputs = set(inputs)
        ends = {*self.inputs, *ends}

        def below(node: Node) -> tuple[Node, ...]:
            return () if node in self.inputs or is_given(node) else bodies(node) or node.inputs

        roots = list(roots)
        order = sorted(walk(roots, below), key=SEQUENCE)
        equal: dict[Any, Node] = {}
        alike: dict[Node, Node] = {}
        for node in order:
            if not (node.inputs or below(node) or node in self.inputs or node.op is ops.LEAF):
                value = np.asarray(value_of(node))
                key = node.weak, value.dtype, value.shape, value.tobytes()
                alike[node] = equal.setdefault(key, node)
        self.chosen, _ = representatives([n for n in order if below(n)], alike)
        self.live: set[Node] = set()
        for node in order:
            if node in self.inputs or any(n in self.live for n in below(node)):
                self.live.add(node)
        needed = walk([self.of(r) for r in roots], lambda n: map(self.of, self.below(n)))
        self.uses = Counter(
            self.of(part) for node in needed for part in nodes_in(node.args) if node in self.live
        )

    def of(self, node: Node) -> Node:
        """The node that is computed in place of another."""
        while True:
            other = self.chosen.get(node, node)
            if other is node and node.op is ops.OUTPUT and (parts := bodies(node.args[0])):
                other = parts[node.args[1]]
            elif other is node and node in self.live:
                pairs = pairs_of(node)
                other = next((a for a, b in pairs if self._is_same(a, b, node)), node)
            if other is node:
                return node
            node = other

    def _is_same(self, of: Node, other: Node, node: Node) -> bool:
        """Whether a node is one of its operands: the other one adds nothing, or is a factor 1."""
        same = (of.shape, of.dtype) == (node.shape, node.dtype)
        return same and other not in self.live and is_neutral(other, node)

    def below(self, node: Node) -> tuple[Node, ...]:
        return () if node in self.inputs or node not in self.live else node.inputs


class NumpySource(GraphSource):
    """The source that computes nodes in NumPy: `lines` with names of `called`, functions that they
    call in `helpers`, the `data` that is too long to be written in a line."""

    def __init__(self, graph: Graph, called: Mapping[Node, str], taken: Iterable[str], for_: str):
        super().__init__()
        self.graph = graph
        self.called = called
        self.kernels = Kernels(for_, {*taken, *called.values()})

    def tree(self, node: Node) -> Any:
        """The expression of a node; what it reads is written first."""
        self.name(self.graph.of(node))
        return self._floating(node)

    def _call(self, thing: Node) -> Any:
        return _Wanted([self.graph.of(n) for n in self.graph.below(thing)])

    def _write(self, thing: Node, call: Any) -> None:
        if thing in self.graph.inputs:
            self.names[thing] = expression(self.called[thing])
            return
        if thing not in self.graph.live:
            self.names[thing] = self._constant(thing)
            return
        try:
            tree = _Fold().visit(self._applied(thing))
        except NoText as reason:
            library, name = self.kernels.library, thing.op.name
            raise fault("E404 no-code", name, library, why=reason, span=thing.span) from None
        name = self.called.get(thing, "")
        text = ast.unparse(tree)
        simple = isinstance(tree, ast.Name | ast.Tuple) or (
            self.graph.uses[thing] < 2 and len(text) <= LONGEST and thing.outputs is None
        )
        if simple and not name:
            self.names[thing] = tree
            return
        name = name or self.kernels.free("v", numbered=True)
        shape = f"  # {thing.shape}" if thing.shape else ""
        self.lines.append(f"{name} = {text}{shape}")
        self.names[thing] = expression(name)

    def _constant(self, node: Node) -> Any:
        array = np.asarray(value_of(node))
        if not array.ndim:
            return expression(
                weak_text(node) if node.weak and node.args else number_text(array[()])
            )
        uniform = array.size > 1 and bool((array == array.flat[0]).all())
        if array.size <= INLINE or uniform:
            return expression(array_text(array))
        name = self.kernels.free("C", numbered=True)
        self.data[name] = array
        if self.kernels.library != "JAX" or array.dtype != np.float32:
            return expression(name)
        own = self.kernels.free("v", numbered=True)  # convolutions are of one dtype in JAX
        self.lines.append(f"{own} = {name}.astype(np.float32)  # {array.shape}")
        return expression(own)

    def _applied(self, node: Node) -> Any:
        op = node.op
        arrays = [n for n in node.inputs if n.ndim or self.graph.of(n) in self.graph.live]
        alone = all(n.dtype.kind != "f" for n in arrays)
        moves = op.kind is Kind.MOVEMENT  # numbers into others of their dtype
        tree_of = self._floating if alone or moves else self._tree_of
        if op is ops.OUTPUT:
            return ast.Subscript(
                self.names[self.graph.of(node.args[0])], ast.Constant(node.args[1])
            )
        if op is ops.CAST:
            return self._filled("input.astype(dtype)", ("input", "dtype"), node, tree_of)
        names = [param.name for param in op.params]
        for own in (op.jax if self.kernels.library == "JAX" else None, op.numpy):
            text = own if type(own) is str or own is None else own(*node.args)
            if text is not None:
                return self._filled(text, names, node, tree_of)
        for what, text in _BY_PROPERTY.items():
            if what in op.properties and op.kernel is not None:
                return self._filled(text, names, node, tree_of)
        if op.kernel is None:
            raise NoText("it has no kernel")
        args = [
            literal(value, tree_of if isinstance(value, Node) else self._typed)
            for value in node.args
        ]
        typed = [literal(value, self._typed) for value in node.args]
        return self.kernels.call(op.kernel, op.key, args, typed)

    def _typed(self, node: Any) -> Any:
        """As `_tree_of`, a number with its dtype."""
        tree = self._tree_of(node)
        if type(node) is not Node or self.graph.of(node) in self.graph.live:
            return tree
        if not isinstance(tree, ast.Constant | ast.UnaryOp) and ast.unparse(tree) not in NOT_FINITE:
            return tree
        name = node.dtype.name.replace("bool", "bool_")
        return ast.Call(expression(f"np.{name}"), [tree], [])

    def _floating(self, node: Any) -> Any:
        """As `_tree_of`, a number as a float where it is one: nothing beside it makes it one."""
        tree = self._tree_of(node)
        if type(node) is Node and node.dtype.kind == "f":
            with suppress(TypeError, ValueError):
                return expression(repr(float(ast.literal_eval(tree))))
        return tree

    def _tree_of(self, node: Any) -> Any:
        if isinstance(node, Op):
            return self.kernels.value(node.kernel, node.key)
        if isinstance(node, type):
            return self.kernels.value(node)
        node = self.graph.of(node)
        if node not in self.names:  # nothing that is computed: an operand of a constant
            self.names[node] = self._constant(node)
        return self.names[node]

    def _filled(
        self, text: str, names: Iterable[str], node: Node, tree_of: Callable[[Any], Any]
    ) -> Any:
        tree = expression(text)
        read = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
        pairs = [("shape", node.shape), *zip(names, node.args, strict=False)]
        given = {name: literal(value, tree_of) for name, value in pairs if name in read}
        for module in re.findall(r"\bscipy\.\w+", text):
            self.kernels.imports.add(f"import {module}")
        return Substitution(given).visit(tree)


_BY_PROPERTY = {"reshapes": "np.reshape(input, shape)", "expands": "np.broadcast_to(input, shape)"}


class _Wanted:
    """What has to be written before a node."""

    def __init__(self, parts: list[Node]):
        self.parts = parts

    def needs(self) -> list[Node]:
        return self.parts


def literal(value: Any, tree_of: Callable[[Any], Any]) -> Any:
    """A value as the source has it."""
    kind = type(value)
    if isinstance(value, Node | Op | np.ufunc | FunctionType):
        return tree_of(value)
    if kind is dict:
        keys, values = (
            [literal(part, tree_of) for part in half] for half in (value, value.values())
        )
        return ast.Dict(keys, values)
    if kind is np.ndarray:
        return expression(array_text(value))
    if kind is tuple or kind is list:
        return ast.Tuple([literal(part, tree_of) for part in value], ast.Load())
    if isinstance(value, np.dtype):
        return expression(f"np.{value.name}".replace("np.bool", "np.bool_"))
    if kind is float or isinstance(value, np.generic):
        return expression(number_text(np.float64(value) if kind is float else value))
    if value is None or kind in (bool, int, str) or value is Ellipsis:
        return expression(repr(value))
    slots = getattr(kind, "__slots__", None)
    if slots and set(slots) == set(
        inspect.signature(kind).parameters
    ):  # what its constructor was given
        given = [ast.keyword(slot, literal(getattr(value, slot), tree_of)) for slot in slots]
        return ast.Call(tree_of(kind), [], given)
    raise NoText(_unspelled(value))


def _unspelled(value: Any) -> str:
    return f"nothing spells {type(value).__name__} values"


class Substitution(ast.NodeTransformer):
    """Names that stand for expressions."""

    def __init__(self, given: Mapping[str, Any]):
        self.given = given

    def visit_Name(self, node: ast.Name) -> Any:
        return self.given.get(node.id, node)


class _Fold(ast.NodeTransformer):
    """Without arguments that are NumPy's defaults, and without choices that are made; `x.T`, and
    what nothing happens to, as one writes it."""

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        match node:
            case ast.Call(
                ast.Attribute(inner, "transpose"),
                [ast.Tuple([ast.Constant(1), ast.Constant(0)])],
                [],
            ) | ast.Call(ast.Attribute(ast.Name("np"), "transpose"), [inner]):
                return ast.Attribute(inner, "T", ast.Load())
        for k in node.keywords:
            if k.arg == "axis" and isinstance(k.value, ast.Tuple) and len(k.value.elts) == 1:
                (k.value,) = k.value.elts
        node.keywords = [
            k for k in node.keywords
            if not isinstance(k.value, ast.Constant)
            or (k.value.value is not None and k.value.value is not False)
        ]  # fmt: skip
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        match node:
            case ast.BinOp(once, ast.Pow(), ast.Constant(int(1))):
                return once
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        if isinstance(node.value, ast.Tuple) and isinstance(node.slice, ast.Constant):
            return node.value.elts[int(str(node.slice.value))]
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        first = node.values[0]
        empty = isinstance(first, ast.Tuple) and not first.elts
        if isinstance(node.op, ast.Or) and isinstance(first, ast.Tuple | ast.Constant):
            return node.values[1] if empty else first
        return node


# -- kernels --------------------------------------------------------------------------------------


@cache
def _definitions(module: ModuleType) -> list[Any]:
    kinds = (ast.ClassDef, ast.FunctionDef, ast.Lambda)
    return [n for n in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(n, kinds)]


def tree_of_function(function: FunctionType | type) -> Any:
    """The part of its module that defines a function, a lambda or a class."""
    code = None if isinstance(function, type) else function.__code__
    (tree,) = ast.parse(_text_of(function.__module__, function.__name__, code)).body
    return tree.value if isinstance(tree, ast.Expr) else tree


@cache
def _text_of(module: str, name: str, code: CodeType | None) -> str:
    """The text of a function, or of a class, which has no code."""
    defined = _definitions(import_module(module))
    if code is None:
        return ast.unparse(next(n for n in defined if getattr(n, "name", "") == name))
    lines = [p for p in list(code.co_positions())[1:] if None not in p and p[3] != 0]
    start = min((p[0], p[2]) for p in lines)
    kind = ast.Lambda if name == "<lambda>" else ast.FunctionDef
    inside = [
        node for node in defined
        if isinstance(node, kind) and getattr(node, "name", "<lambda>") == name
        and (node.lineno, node.col_offset) <= start <= (node.end_lineno, node.end_col_offset)
        and [a.arg for a in node.args.args] == list(code.co_varnames[: code.co_argcount])
    ]  # fmt: skip
    return ast.unparse(max(inside, key=lambda node: (node.lineno, node.col_offset)))


class Kernels:
    """Kernels as expressions and as functions that stand in the source."""

    def __init__(self, library: str, taken: set[str]):
        self.library = library
        self.taken = taken
        self.helpers: dict[Any, str] = {}
        self.texts: list[str] = []
        self.imports: set[str] = set()

    def free(self, name: str, numbered: bool = False) -> str:
        """A name that nothing has."""
        found, n = (f"{name}1", 1) if numbered else (name, 1)
        while found in self.taken:
            n += 1
            found = f"{name}{n}"
        self.taken.add(found)
        return found

    def call(self, kernel: Any, key: str, args: list[Any], typed: list[Any]) -> Any:
        """A kernel applied; `typed` are the arguments with the dtypes of numbers."""
        kernel = getattr(kernel, "ufunc", kernel)
        text = INFIX.get(kernel) if isinstance(kernel, np.ufunc) else None
        if text is not None:
            return Substitution(dict(zip("ab", args, strict=False))).visit(expression(text))
        if isinstance(kernel, FunctionType) and kernel.__module__.startswith(
            __package__.split(".")[0]
        ):
            tree = tree_of_function(kernel)
            body = tree.body if isinstance(tree, ast.Lambda) else _returned(tree)
            if body is not None and (found := self._inlined(kernel, tree, body, args, typed)):
                return found
        return ast.Call(self.value(kernel, key), typed, [])

    def _inlined(self, kernel: Any, tree: Any, body: Any, args: Any, typed: Any) -> Any:
        """The expression of a kernel with its arguments; None where that would compute something
        twice, or ask a number what only arrays know."""
        names = [a.arg for a in tree.args.args]
        given = dict(zip(names, args, strict=False))
        seen = Counter(n.id for n in ast.walk(body) if isinstance(n, ast.Name))
        asked = {
            n.value.id for n in ast.walk(body)
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
        }  # fmt: skip
        plain = (ast.Name, ast.Constant, ast.Tuple)
        if any(seen[n] > 1 and not isinstance(v, plain) for n, v in given.items()):
            return None
        given |= {n: v for n, v in zip(names, typed, strict=False) if n in asked}
        tree = self._resolved(kernel, ast.Expression(body))
        if any(isinstance(n, ast.Lambda | ast.comprehension) for n in ast.walk(tree)):
            return None
        return Substitution(given).visit(tree.body)

    def value(self, value: Any, key: str = "") -> Any:
        """What a name of a kernel stands for."""
        if isinstance(value, Op):
            return self.value(value.kernel, value.key)
        value = value if value is np else getattr(value, "ufunc", value)
        if getattr(np, getattr(value, "__name__", ""), None) is not value:
            value = getattr(value, "__wrapped__", value)  # a cache
        if isinstance(value, ModuleType):
            if value is np:
                return expression("np")
            self.imports.add(f"import {value.__name__}")
            return expression(value.__name__)
        name = getattr(value, "__name__", "")
        module = getattr(value, "__module__", "") or ""
        owner = getattr(value, "__self__", None)
        if isinstance(owner, np.ufunc):
            return ast.Attribute(self.value(owner), name, ast.Load())
        if name and getattr(np, name, None) is value:
            return expression(f"np.{name}")
        if isinstance(value, FunctionType | type) and module.startswith("autodiff_cli."):
            return expression(self._helper(value, key))
        if callable(value) and module.partition(".")[0] in ("numpy", "scipy", "math", "itertools"):
            self.imports.add(f"import {module}")
            return expression(f"{module}.{name}")
        if isinstance(value, np.dtype):
            return expression(f"np.dtype({value.name!r})")
        if isinstance(value, np.ufunc):  # scipy's have no module
            self.imports.add("import scipy.special")
            return expression(f"scipy.special.{name}")
        return literal(value, self._known)

    def _known(self, value: Any) -> Any:
        """What stands for a function among other values."""
        if isinstance(value, Node) or not (callable(value) or isinstance(value, Op)):
            raise NoText(_unspelled(value))
        return self.value(value)

    def _helper(self, function: Any, key: str) -> str:
        """The name of a function, which is written with all that it calls."""
        if function in self.helpers:
            return self.helpers[function]
        nested = "<" in function.__qualname__
        name = self.helpers[function] = self.free(
            (key or "kernel") if nested else function.__name__
        )
        tree: Any = tree_of_function(function)
        if isinstance(tree, ast.Lambda):
            lambda_ = tree
            tree = ast.parse(f"def {name}(): return 0").body[0]
            tree.args, tree.body = lambda_.args, [ast.Return(lambda_.body)]
        if isinstance(function, type):
            if function.__bases__ != (object,):
                raise NoText(f"its kernel needs the class {function.__name__}")
            functions = {n: getattr(f, "fget", f) for n, f in vars(function).items()}
            tree.body = [
                self._resolved(functions[part.name], part)
                if isinstance(part, ast.FunctionDef)
                else part
                for part in tree.body
            ]
        else:
            tree.decorator_list = []
            kept = function.__defaults__ or ()
            tree.args.defaults = [ast.Name(f"default {i}", ast.Load()) for i in range(len(kept))]
            tree = self._resolved(function, tree)
        tree.name = name
        if self.library == "JAX":
            tree = in_jax(tree)
            if changes_arrays(tree):
                raise NoText("its kernel writes into an array that others may see")
        self.texts.append(ast.unparse(ast.fix_missing_locations(tree)))
        return name

    def _resolved(self, function: FunctionType, tree: Any) -> Any:
        """A tree in which names of its module and of the functions around it are written out."""
        code = function.__code__
        cells = [c.cell_contents for c in function.__closure__ or ()]
        known = dict(zip(code.co_freevars, cells, strict=True))
        args = tree.args if isinstance(tree, ast.FunctionDef) else None
        last = code.co_varnames[: code.co_argcount][::-1]
        defaults = dict(zip(last, (function.__defaults__ or ())[::-1], strict=False))
        kernels = self
        given = enumerate(function.__defaults__ or ())
        known |= {f"default {i}": value for i, value in given}
        nodes = list(ast.walk(tree))
        local = {n.id for n in nodes if isinstance(n, ast.Name) and type(n.ctx) is not ast.Load}
        local |= {n.arg for n in nodes if isinstance(n, ast.arg)}
        local |= {n.name for n in nodes if isinstance(n, ast.FunctionDef)} - {function.__name__}
        local |= {
            (a.asname or a.name).split(".")[0] for n in nodes
            if isinstance(n, ast.Import) or (isinstance(n, ast.ImportFrom) and not n.level)
            for a in n.names
        }  # fmt: skip
        if args is None:
            local |= set(code.co_varnames[: code.co_argcount]) - set(defaults)
            known |= defaults

        class Resolve(ast.NodeTransformer):
            def visit_Name(self, node: ast.Name) -> Any:
                name = node.id
                if name in local:
                    return node
                if name in known:
                    return kernels.value(known[name])
                if name in function.__globals__:
                    return kernels.value(function.__globals__[name])
                if hasattr(builtins, name):
                    return node
                raise NoText(f"its kernel reads {name}")

            def visit_Call(self, node: ast.Call) -> Any:
                if isinstance(node.func, ast.Name) and node.func.id in ("fault", "fail"):
                    return ast.Call(expression("ValueError"), node.args[:1], [])
                return self.generic_visit(node)

            def visit_If(self, node: ast.If) -> Any:
                test = ast.unparse(self.visit(deepcopy(node.test)))
                if test.startswith("None is not None"):  # what a kernel was made without
                    return [self.visit(part) for part in node.orelse]
                return self.generic_visit(node)

            def visit_Expr(self, node: ast.Expr) -> Any:
                if ast.unparse(node).startswith("check_size("):  # a limit of programs
                    return None
                return self.generic_visit(node)

            def visit_Attribute(self, node: ast.Attribute) -> Any:
                match node:
                    case ast.Attribute(ast.Attribute(ast.Name("F"), key), "kernel"):
                        return kernels.value(getattr(F, key))
                self.generic_visit(node)
                of_op = isinstance(node.value, ast.Name) and node.value.id == "op"
                return node.value if of_op and node.attr == "kernel" else node  # they are kernels

            def visit_arg(self, node: ast.arg) -> Any:
                return ast.arg(node.arg)

            def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
                node.returns = None
                return self.generic_visit(node)

            def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
                if node.value is None:
                    return None
                return ast.Assign([node.target], self.visit(node.value), lineno=node.lineno)

            def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
                return None if node.level else node

        return Resolve().visit(tree)


def _returned(tree: Any) -> Any:
    """The expression of a function that is nothing else."""
    body = tree.body
    if body and isinstance(body[0], ast.Expr):  # what it says of itself
        body = body[1:]
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None

"""Statements become closures: `compile_block(trees) -> run(scope) -> signal`.

A signal is None (go on), BREAK, CONTINUE, or a `Returned` with the value of a `return`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd import calls
from ..autograd.tensor import Tensor
from ..errors import AutodiffError, fail
from ..graph.node import Node as GraphNode
from ..graph.op import bytes_text
from ..graph.state import STATE
from . import syntax
from .attributes import get_attribute, set_attribute
from .expressions import (
    Context,
    compile_defaults,
    compile_expression,
    compile_truth,
    placed,
    placed_operator,
)
from .factories import is_literal_value, leaf_of_literal
from .functions import Parameters, call_value
from .names import import_module, import_name
from .numbers import find_ragged
from .operand_labels import with_subject
from .operations import (
    MAX_ITEMS,
    MODE,
    binary,
    count_step,
    dict_key,
    index,
    index_parts,
    items_of,
    iterate,
    kind_of,
    slice_part,
)
from .text import text
from .values import GradMode, Scope, UserFunction

Signal = Any
RunStatement = Callable[[Scope], Signal]

BREAK = object()
CONTINUE = object()


class Returned:
    """The value of a `return` on its way out."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value


class Overrides:
    """`-D` values by name; each replaces what the first assignment of its name would give."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}


OVERRIDES = Overrides()


class Shown:
    """The last bare expression at module level, for programs that are one expression."""

    __slots__ = ("printed", "span", "value")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.value: Any = None
        self.span: Any = None


SHOWN = Shown()


class Watch:
    """What the command line wants to know of assignments at module level: the last scalar that was
    computed, and names to differentiate with respect to (`wrt`)."""

    __slots__ = ("last", "wrt")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.last: tuple[str | None, Tensor] | None = None
        self.wrt: dict[str, None] = {}

    def note(self, name: str | None, value: Any) -> None:
        """A value was assigned at module level, or stood there on its own."""
        if type(value) is not Tensor:
            return
        if name in self.wrt:
            if not value.requires_grad:
                value.set_requires_grad(True)
            elif not value.is_leaf:
                value.retain_grad()
        node = value.node
        if not node.shape and node.requires_grad and not value.is_leaf:
            self.last = (name, value)


WATCH = Watch()


def compile_block(trees: list[syntax.Node], context: Context) -> RunStatement:
    """The closure of a list of statements."""
    runs = [STATEMENTS[type(tree)](tree, context) for tree in trees]
    if len(runs) == 1:
        return runs[0]

    def run(scope: Scope) -> Signal:
        for statement in runs:
            signal = statement(scope)
            if signal is not None:
                return signal
        return None

    return run


# -- assignment -----------------------------------------------------------------------------------


def compile_target(tree: syntax.Node, context: Context) -> Callable[[Scope, Any], None]:
    """`assign(scope, value)` of a target."""
    if isinstance(tree, syntax.Name):
        return _name_target(tree.id, context)
    if isinstance(tree, syntax.Tuple | syntax.List):
        return _unpacking(tree, context)
    if isinstance(tree, syntax.Attribute):
        return _attribute_target(tree, context)
    if isinstance(tree, syntax.Subscript):
        return _subscript_target(tree, context)
    raise fail(
        "E102", "this cannot be assigned to", tree.span, help="assign to a name, `x[i]` or `x.grad`"
    )


def _name_target(name: str, context: Context) -> Callable[[Scope, Any], None]:
    if name in context.global_names:

        def assign_global(scope: Scope, value: Any) -> None:
            while scope.outer is not None:
                scope = scope.outer
            scope.names[name] = value

        return assign_global

    def assign(scope: Scope, value: Any) -> None:
        scope.names[name] = value

    return assign


def _unpacking(tree: Any, context: Context) -> Callable[[Scope, Any], None]:
    elements = tree.elements
    star = next((i for i, t in enumerate(elements) if isinstance(t, syntax.Starred)), -1)
    targets = [
        compile_target(t.value if isinstance(t, syntax.Starred) else t, context) for t in elements
    ]
    span = tree.span

    def assign(scope: Scope, value: Any) -> None:
        try:
            items = list(value) if type(value) is tuple else items_of(value)
        except AutodiffError as error:
            raise placed(error, span) from None
        if star >= 0:
            after = len(targets) - star - 1
            if len(items) < len(targets) - 1:
                raise fail(
                    "E211",
                    f"{len(items)} values for at least {len(targets) - 1} names",
                    span,
                    help="give more values",
                )
            items = [*items[:star], items[star : len(items) - after], *items[len(items) - after :]]
        elif len(items) != len(targets):
            raise fail(
                "E211",
                f"{len(items)} value{'' if len(items) == 1 else 's'} for {len(targets)} names",
                span,
                label=f"{len(targets)} names, but the value has {len(items)}",
                help="as many names as values, or `a, *rest = ...`",
            )
        for target, item in zip(targets, items, strict=True):
            target(scope, item)

    return assign


def _attribute_target(tree: syntax.Attribute, context: Context) -> Callable[[Scope, Any], None]:
    owner = compile_expression(tree.value, context)
    name, span = tree.attr, tree.span

    def assign(scope: Scope, value: Any) -> None:
        target = owner(scope)
        STATE.span = span
        try:
            set_attribute(target, name, value)
        except AutodiffError as error:
            raise placed(error, span) from None

    return assign


def _subscript_target(tree: syntax.Subscript, context: Context) -> Callable[[Scope, Any], None]:
    owner = compile_expression(tree.value, context)
    key_run = compile_expression(tree.index, context)
    span = tree.span

    def assign(scope: Scope, value: Any) -> None:
        target = owner(scope)
        key = key_run(scope)
        STATE.span = span
        try:
            set_item(target, key, value)
        except AutodiffError as error:
            raise placed(with_subject(error, tree), span) from None

    return assign


def set_item(target: Any, key: Any, value: Any) -> None:
    """`target[key] = value`."""
    if isinstance(target, Tensor):
        if isinstance(value, list | tuple) and not MODE.python:
            value = Tensor(calls.node_of_list(list(value)))
        if not isinstance(value, Tensor | bool | int | float):
            raise fail(
                "E208",
                f"{kind_of(value)} cannot be written into a tensor",
                help="write numbers or tensors",
            )
        from ..autograd.indexing import write_index

        write_index(target, index_parts(key), value)
    elif isinstance(target, list):
        if isinstance(key, slice):
            target[slice(slice_part(key.start), slice_part(key.stop), slice_part(key.step))] = (
                items_of(value)
            )
            return
        at = key if type(key) is int else index(range(len(target)), key)
        if not -len(target) <= at < len(target):
            raise fail(
                "E210",
                f"index {at} is out of range for a list of length {len(target)}",
                help="use append to add items",
            )
        target[at] = value
    elif isinstance(target, dict):
        if len(target) >= MAX_ITEMS:
            raise fail("E505", f"a dict of more than {MAX_ITEMS} items", help="use a tensor")
        target[dict_key(key)] = value
    else:
        setter = getattr(target, "set_item", None)
        if setter is None:
            raise fail(
                "E208",
                f"{kind_of(target)} does not take assignments to its items",
                help="lists, dicts and tensors do",
            )
        setter(key, value)


def _is_literal_tree(tree: syntax.Node) -> bool:
    """Whether an expression is only literals, names and arithmetic: its number is a leaf."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, syntax.Constant | syntax.NumList | syntax.Name):
            continue
        if isinstance(
            node,
            syntax.UnaryOp
            | syntax.BinOp
            | syntax.List
            | syntax.IfExp
            | syntax.Compare
            | syntax.BoolOp,
        ):
            pending.extend(syntax.children(node))
        elif isinstance(node, syntax.Attribute):
            if not (
                isinstance(node.value, syntax.Name)
                and node.attr in ("pi", "e", "inf", "nan", "tau")
            ):
                return False
        elif isinstance(node, syntax.Call) and isinstance(node.func, syntax.Attribute):
            if not (isinstance(node.func.value, syntax.Name) and node.func.value.id == "math"):
                return False
            pending.extend(node.args)
        elif not (
            isinstance(node, syntax.Call)
            and isinstance(node.func, syntax.Name)
            and node.func.id == "float"
        ):
            return False
    return True


def _literal_maker(tree: syntax.Node) -> Callable[[Any], Any]:
    """What turns the value of a module-level assignment of a native file into leaves."""
    if isinstance(tree, syntax.Tuple):
        makers = [_literal_maker(t) for t in tree.elements]
        if any(isinstance(t, syntax.Starred) for t in tree.elements):
            return lambda value: value
        return lambda value: tuple([m(v) for m, v in zip(makers, value, strict=True)])
    if not _is_literal_tree(tree):
        return lambda value: value
    span = tree.span
    written_out = isinstance(tree, syntax.NumList)

    def make(value: Any) -> Any:
        if not written_out and not is_literal_value(value):
            return value
        STATE.span = span
        try:
            return leaf_of_literal(value, written_out)
        except AutodiffError as error:
            if error.code == "E107" and isinstance(tree, syntax.NumList):
                found = find_ragged(tree)
                if found is not None:
                    error.amend(span=found[0])
            raise placed(error, span) from None

    return make


def _assign(tree: syntax.Assign, context: Context) -> RunStatement:
    value_run = compile_expression(tree.value, context)
    targets = [compile_target(t, context) for t in tree.targets]
    native = context.module_level and not MODE.python
    named = all(isinstance(t, syntax.Name | syntax.Tuple | syntax.List) for t in tree.targets)
    make = _literal_maker(tree.value) if native and named else None
    if make is not None and isinstance(tree.value, syntax.NumList):
        numbers = tree.value.values
        value_run = lambda scope: numbers  # noqa: E731  # the leaf copies them
    names = (
        [t.id for t in tree.targets if isinstance(t, syntax.Name)] if context.module_level else []
    )
    many = (
        [n for t in tree.targets if isinstance(t, syntax.Tuple | syntax.List) for n in _names_in(t)]
        if context.module_level
        else []
    )
    noted = context.module_level
    pairs = isinstance(tree.value, syntax.Tuple) and len(tree.targets) == 1 and bool(many)

    def run(scope: Scope) -> Signal:
        value = value_run(scope)
        if make is not None:
            value = make(value)
        if OVERRIDES.values:
            for name in names:
                if name in OVERRIDES.values:
                    value = overridden(name, value)
            if pairs and any(n in OVERRIDES.values for n in many) and isinstance(value, tuple):
                value = tuple(
                    overridden(n, v) if n in OVERRIDES.values else v
                    for n, v in zip(many, value, strict=False)
                )
        for assign in targets:
            assign(scope, value)
        if noted:
            if type(value) is Tensor:
                WATCH.note(names[0] if names else None, value)
            elif type(value) is tuple and many:
                for name, item in zip(many, value, strict=False):
                    WATCH.note(name, item)
        return None

    return run


def _names_in(tree: Any) -> list[str]:
    return [t.id if isinstance(t, syntax.Name) else "" for t in tree.elements]


def overridden(name: str, value: Any) -> Any:
    """What `-D name=...` puts in place of a value: it stays the leaf, constant or number it was."""
    make = OVERRIDES.values.pop(name)
    return make(value)


def _annotated(tree: syntax.AnnAssign, context: Context) -> RunStatement:
    if tree.value is None:
        return _pass(tree, context)
    return _assign(syntax.Assign([tree.target], tree.value, tree.span), context)


def augmented(symbol: str, current: Any, operand: Any) -> Any:
    """`current op= operand`: in place for tensors and lists, else a new value."""
    if isinstance(current, Tensor):
        literal = current.accumulator is not None and current.accumulator.literal and STATE.grad
        if not literal:
            current.check_writable()
            result = binary(symbol, current, operand)
            _check_in_place(symbol, current, result)
            current.write(result.node, result.node)
            return current
    if type(current) is list and symbol == "+" and isinstance(operand, list | tuple | range):
        current.extend(items_of(operand))
        if len(current) > MAX_ITEMS:
            raise fail("E505", f"a list of more than {MAX_ITEMS} items", help="use a tensor")
        return current
    return binary(symbol, current, operand)


def _check_in_place(symbol: str, current: Tensor, result: Tensor) -> None:
    if result.shape != current.shape:
        raise fail(
            "E308",
            f"`{symbol}=` would change the shape of the tensor from {tuple(current.shape)} to "
            f"{tuple(result.shape)}",
            help=f"write `x = x {symbol} ...` to make a new tensor",
        )
    if result.dtype.kind == "f" and current.dtype.kind != "f":
        raise fail(
            "E307",
            f"`{symbol}=` gives {result.dtype.name}, which cannot be stored in a "
            f"{current.dtype.name} tensor",
            help="use a float tensor: `x = x.float()` first",
        )


def _augmented(tree: syntax.AugAssign, context: Context) -> RunStatement:
    operand_run = compile_expression(tree.value, context)
    target = tree.target
    symbol = tree.op.rstrip("=") if tree.op != "=" else tree.op
    span = tree.span
    if isinstance(target, syntax.Attribute):
        owner_run = compile_expression(target.value, context)
        name = target.attr

        def run_attribute(scope: Scope) -> Signal:
            owner = owner_run(scope)
            current = get_attribute(owner, name)
            operand = operand_run(scope)
            STATE.span = span
            try:
                result = augmented(symbol, current, operand)
                if not (isinstance(owner, Tensor) and name in ("data", "grad")):
                    set_attribute(owner, name, result)
            except AutodiffError as error:
                raise placed(error, span) from None
            return None

        return run_attribute
    if isinstance(target, syntax.Subscript):
        owner_run = compile_expression(target.value, context)
        key_run = compile_expression(target.index, context)

        def run_item(scope: Scope) -> Signal:
            owner = owner_run(scope)
            key = key_run(scope)
            STATE.span = span
            try:
                if isinstance(owner, Tensor):
                    owner.check_writable()
                current = index(owner, key)
                operand = operand_run(scope)
                STATE.span = span
                result = augmented(symbol, current, operand)
                if not (
                    isinstance(owner, Tensor)
                    and result.storage is not None
                    and result.storage is owner.storage
                ):
                    set_item(owner, key, result)
            except AutodiffError as error:
                raise placed(with_subject(error, target), span) from None
            return None

        return run_item
    assigned = target.id if isinstance(target, syntax.Name) else None
    noted = context.module_level
    load = compile_expression(target, context)
    store = compile_target(target, context)
    pseudo = syntax.BinOp(target, symbol, tree.value, span, span)

    def run(scope: Scope) -> Signal:
        current = load(scope)
        operand = operand_run(scope)
        STATE.span = span
        try:
            value = augmented(symbol, current, operand)
            store(scope, value)
        except AutodiffError as error:
            raise placed_operator(error, pseudo, current, operand) from None
        if noted:
            WATCH.note(assigned, value)
        return None

    return run


def _delete(tree: syntax.Delete, context: Context) -> RunStatement:
    removers = [_remover(t, context) for t in tree.targets]

    def run(scope: Scope) -> Signal:
        for remove in removers:
            remove(scope)
        return None

    return run


def _remover(tree: syntax.Node, context: Context) -> Callable[[Scope], None]:
    if isinstance(tree, syntax.Name):

        def remove_name(scope: Scope) -> None:
            if scope.names.pop(tree.id, scope) is scope:
                raise fail(
                    "E201",
                    f"name `{tree.id}` is not defined",
                    tree.span,
                    help="it can be deleted only once",
                )

        return remove_name
    if isinstance(tree, syntax.Subscript):
        owner = compile_expression(tree.value, context)
        key_run = compile_expression(tree.index, context)

        def remove_item(scope: Scope) -> None:
            target, key = owner(scope), key_run(scope)
            if not isinstance(target, list | dict) or isinstance(key, slice):
                raise fail(
                    "E208",
                    f"items of {kind_of(target)} cannot be deleted",
                    tree.span,
                    help="lists and dicts can",
                )
            try:
                del target[key]
            except (KeyError, IndexError, TypeError):
                raise fail(
                    "E210", f"there is no item {text(key)}", tree.span, help="check with `in` first"
                ) from None

        return remove_item
    if isinstance(tree, syntax.Tuple):
        parts = [_remover(t, context) for t in tree.elements]

        def remove_all(scope: Scope) -> None:
            for part in parts:
                part(scope)

        return remove_all
    raise fail("E102", "this cannot be deleted", tree.span, help="delete a name or an item")


# -- control flow ---------------------------------------------------------------------------------


def _expression(tree: syntax.ExprStmt, context: Context) -> RunStatement:
    value_run = compile_expression(tree.value, context)
    span = tree.value.span
    if not context.module_level:

        def run(scope: Scope) -> Signal:
            value_run(scope)
            return None

        return run

    def run_shown(scope: Scope) -> Signal:
        SHOWN.value = value = value_run(scope)
        SHOWN.span = span
        WATCH.note(None, value)
        return None

    return run_shown


def _if(tree: syntax.If, context: Context) -> RunStatement:
    branches = []
    orelse: list[syntax.Node] = [tree]
    while len(orelse) == 1 and isinstance(orelse[0], syntax.If):
        branch = orelse[0]
        branches.append((compile_truth(branch.test, context), compile_block(branch.body, context)))
        orelse = branch.orelse
    last = compile_block(orelse, context) if orelse else None

    def run(scope: Scope) -> Signal:
        for test, body in branches:
            if test(scope):
                return body(scope)
        return None if last is None else last(scope)

    return run


def _for(tree: syntax.For, context: Context) -> RunStatement:
    source = compile_expression(tree.iter, context)
    assign = compile_target(tree.target, context)
    body = compile_block(tree.body, context)
    orelse = compile_block(tree.orelse, context) if tree.orelse else None
    span = tree.iter.span
    whole = tree.span

    def run(scope: Scope) -> Signal:
        STATE.span = span
        try:
            for item in iterate(source(scope)):
                assign(scope, item)
                signal = body(scope)
                if signal is not None:
                    if signal is BREAK:
                        return None
                    if signal is not CONTINUE:
                        return signal
                HOUSEKEEPING.after_step(scope)
        except AutodiffError as error:
            raise placed(error, whole if error.code == "E506" else span) from None
        return None if orelse is None else orelse(scope)

    return run


def _while(tree: syntax.While, context: Context) -> RunStatement:
    test = compile_truth(tree.test, context)
    body = compile_block(tree.body, context)
    orelse = compile_block(tree.orelse, context) if tree.orelse else None
    span = tree.test.span

    def run(scope: Scope) -> Signal:
        while test(scope):
            try:
                count_step()
            except AutodiffError as error:
                raise placed(error, span) from None
            signal = body(scope)
            if signal is not None:
                if signal is BREAK:
                    return None
                if signal is not CONTINUE:
                    return signal
            HOUSEKEEPING.after_step(scope)
        return None if orelse is None else orelse(scope)

    return run


class Housekeeping:
    """Keeps long loops from piling up a graph that nobody evaluated: every `every` new nodes, the
    tensors that names hold are evaluated and their finished history is let go."""

    __slots__ = ("every", "mark", "start")

    def __init__(self) -> None:
        self.every = 50_000
        self.restart()

    def restart(self) -> None:
        """Called when a program begins."""
        self.start = self.mark = GraphNode.counter()

    def after_step(self, scope: Scope) -> None:
        """Called after each step of a loop."""
        if STATE.steps & 31:
            return
        newest = GraphNode.counter()
        if newest - self.mark < self.every or STATE.batching:
            return
        before, self.mark = self.mark, newest
        most = STATE.max_steps * 3 // 2
        if newest - self.start > most:
            raise fail(
                "E506",
                f"the program applied more than {most} operations",
                help="is the loop endless? raise the limit with --max-steps 10000000",
            )
        self.collect(scope, before)
        if memory_used() > STATE.max_bytes + OWN_MEMORY:
            raise fail(
                "E505",
                f"the graph that this loop builds needs more than {bytes_text(STATE.max_bytes)}",
                help="call backward() in the loop, detach(), or use torch.no_grad()",
            )

    def collect(self, scope: Scope, since: int) -> None:
        """Evaluate what names hold, then release histories that no gradient needs."""
        from ..engine.evaluate import evaluate, release

        nodes: list[GraphNode] = []
        at: Scope | None = scope
        while at is not None:
            pending = list(at.names.values())
            while pending:
                value = pending.pop()
                if isinstance(value, Tensor):
                    nodes.append(value.node)
                    if value.grad is not None:
                        nodes.append(value.grad.node)
                elif isinstance(value, list | tuple) and len(value) < 100_000:
                    pending.extend(value)
                elif isinstance(value, dict):
                    pending.extend(value.values())
            at = at.outer
        evaluate(nodes)
        release(nodes, since)


# What Python, NumPy and the table take for themselves.
OWN_MEMORY = 100 << 20


def memory_used() -> int:
    """Bytes of memory this process has in use; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        return 0


HOUSEKEEPING = Housekeeping()


def _break(tree: syntax.Break, context: Context) -> RunStatement:
    return lambda scope: BREAK


def _continue(tree: syntax.Continue, context: Context) -> RunStatement:
    return lambda scope: CONTINUE


def _pass(tree: syntax.Node, context: Context) -> RunStatement:
    return lambda scope: None


def _return(tree: syntax.Return, context: Context) -> RunStatement:
    if tree.value is None:
        return lambda scope: Returned(None)
    value_run = compile_expression(tree.value, context)
    return lambda scope: Returned(value_run(scope))


def _with(tree: syntax.With, context: Context) -> RunStatement:
    managers = [(compile_expression(item.expr, context), item.expr.span) for item in tree.items]
    body = compile_block(tree.body, context)

    def run(scope: Scope) -> Signal:
        before = STATE.grad
        for make, span in managers:
            mode = make(scope)
            if not isinstance(mode, GradMode):
                raise fail(
                    "E203",
                    f"`with` takes torch.no_grad() and its kin, not {kind_of(mode)}",
                    span,
                    help="write `with torch.no_grad():`",
                )
            if mode.before:
                before = mode.before.pop()
            STATE.grad = mode.enabled
        try:
            return body(scope)
        finally:
            STATE.grad = before

    return run


def _assert(tree: syntax.Assert, context: Context) -> RunStatement:
    from .assertions import compile_assert

    return compile_assert(tree, context)


def _raise(tree: syntax.Raise, context: Context) -> RunStatement:
    span = tree.span
    value = tree.value
    message = None
    name = "an exception"
    if isinstance(value, syntax.Call):
        name = value.func.span.text
        if value.args:
            message = compile_expression(value.args[0], context)
    elif value is not None:
        name = value.span.text

    def run(scope: Scope) -> Signal:
        words = "" if message is None else f": {text(message(scope))}"
        raise fail(
            "E212",
            f"the program raised {name}{words}",
            span,
            help="this is the program's own error",
        )

    return run


# -- definitions ----------------------------------------------------------------------------------


def assigned_names(trees: list[syntax.Node]) -> tuple[set[str], set[str]]:
    """Names that a function body assigns, and those it declares global."""
    found: set[str] = set()
    outer: set[str] = set()
    pending: list[syntax.Node] = list(trees)
    while pending:
        node = pending.pop()
        if isinstance(node, syntax.FunctionDef | syntax.ClassDef):
            found.add(node.name)
            continue
        if isinstance(
            node,
            syntax.Lambda
            | syntax.ListComp
            | syntax.GeneratorExp
            | syntax.SetComp
            | syntax.DictComp,
        ):
            continue
        if isinstance(node, syntax.Global | syntax.Nonlocal):
            outer.update(node.names)
        elif isinstance(node, syntax.Assign):
            for target in node.targets:
                found.update(_target_names(target))
        elif isinstance(node, syntax.AugAssign | syntax.AnnAssign | syntax.For):
            found.update(_target_names(node.target))
        elif isinstance(node, syntax.Import | syntax.ImportFrom):
            found.update(a.asname or a.name.split(".")[0] for a in node.names)
        elif isinstance(node, syntax.With):
            for item in node.items:
                if item.target is not None:
                    found.update(_target_names(item.target))
        for body in syntax.bodies(node):
            pending.extend(body)
    return found - outer, outer


def _target_names(tree: syntax.Node) -> list[str]:
    if isinstance(tree, syntax.Name):
        return [tree.id]
    if isinstance(tree, syntax.Tuple | syntax.List):
        return [n for t in tree.elements for n in _target_names(t)]
    if isinstance(tree, syntax.Starred):
        return _target_names(tree.value)
    return []


def compile_function(tree: syntax.FunctionDef, context: Context) -> Callable[[Scope], UserFunction]:
    """`make(scope) -> function` of a `def`."""
    names, outer = assigned_names(tree.body)
    inner = Context(False, frozenset(names | {p.name for p in tree.params}))
    inner.global_names = {n for n in outer if _declares(tree.body, n, syntax.Global)}
    nonlocal_names = outer - inner.global_names
    block = (
        compile_block(tree.body, inner)
        if not nonlocal_names
        else _with_nonlocals(tree, inner, nonlocal_names)
    )
    parameters = Parameters(tree.params)
    defaults = compile_defaults(tree.params, context)
    name, span = tree.name, tree.name_span

    def body(scope: Scope) -> Any:
        signal = block(scope)
        return signal.value if type(signal) is Returned else None

    def make(scope: Scope) -> UserFunction:
        positional, keyword = defaults(scope)
        return UserFunction(name, parameters, body, scope, span, positional, keyword)

    return make


def _declares(trees: list[syntax.Node], name: str, kind: type) -> bool:
    pending = list(trees)
    while pending:
        node = pending.pop()
        if isinstance(node, kind) and name in node.names:  # type: ignore[attr-defined]  # Global or Nonlocal
            return True
        for body in syntax.bodies(node):
            pending.extend(body)
    return False


def _with_nonlocals(tree: syntax.FunctionDef, inner: Context, names: set[str]) -> RunStatement:
    """`nonlocal x`: the function writes its results back to the scope that has the name."""
    block = compile_block(tree.body, inner)

    def run(scope: Scope) -> Signal:
        try:
            return block(scope)
        finally:
            for name in names:
                if name in scope.names:
                    at = scope.outer
                    while at is not None and name not in at.names:
                        at = at.outer
                    if at is not None:
                        at.names[name] = scope.names.pop(name)

    return run


def _function(tree: syntax.FunctionDef, context: Context) -> RunStatement:
    make = compile_function(tree, context)
    decorators = [(compile_expression(d, context), d.span) for d in tree.decorators]
    store = _name_target(tree.name, context)

    def run(scope: Scope) -> Signal:
        value: Any = make(scope)
        for decorate, span in reversed(decorators):
            STATE.span = span
            try:
                value = call_value(decorate(scope), [value], {})
            except AutodiffError as error:
                raise placed(error, span) from None
        store(scope, value)
        return None

    return run


def _class(tree: syntax.ClassDef, context: Context) -> RunStatement:
    from .classes import compile_class

    return compile_class(tree, context)


def _import(tree: syntax.Import, context: Context) -> RunStatement:
    def run(scope: Scope) -> Signal:
        for alias in tree.names:
            try:
                namespace = import_module(alias.name)
                if alias.asname is None and "." in alias.name:
                    namespace = import_module(alias.name.split(".")[0])
            except AutodiffError as error:
                raise placed(error, alias.span) from None
            scope.names[alias.asname or alias.name.split(".")[0]] = namespace
        return None

    return run


def _import_from(tree: syntax.ImportFrom, context: Context) -> RunStatement:
    if tree.module == "__future__":
        return _pass(tree, context)

    def run(scope: Scope) -> Signal:
        for alias in tree.names:
            try:
                value = import_name(tree.module, alias.name)
            except AutodiffError as error:
                raise placed(error, alias.span) from None
            scope.names[alias.asname or alias.name] = value
        return None

    return run


STATEMENTS: dict[type, Callable[[Any, Context], RunStatement]] = {
    syntax.ExprStmt: _expression,
    syntax.Assign: _assign,
    syntax.AugAssign: _augmented,
    syntax.AnnAssign: _annotated,
    syntax.Delete: _delete,
    syntax.If: _if,
    syntax.For: _for,
    syntax.While: _while,
    syntax.Break: _break,
    syntax.Continue: _continue,
    syntax.Pass: _pass,
    syntax.Return: _return,
    syntax.With: _with,
    syntax.Assert: _assert,
    syntax.Raise: _raise,
    syntax.FunctionDef: _function,
    syntax.ClassDef: _class,
    syntax.Import: _import,
    syntax.ImportFrom: _import_from,
    syntax.Global: _pass,
    syntax.Nonlocal: _pass,
}

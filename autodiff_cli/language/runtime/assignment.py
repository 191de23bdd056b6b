"""Assignments and deletions, also in place, and the leaves that literals of native files make."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import Any

from ...autograd import calls
from ...autograd.indexing import write_index
from ...autograd.tensor import Array, Tensor
from ...errors import AutodiffError, fail, fault
from ...graph.op import LEAF
from ...graph.state import STATE
from ...source import Span
from ..errors.operand_labels import placed, placed_operator, with_subject
from ..syntax import tree as syntax
from ..syntax.literals.numbers import find_ragged
from ..values.dialect import kind_of
from ..values.factories import is_literal_value, leaf_of_literal
from ..values.formatting import text
from ..values.functions import guarded
from ..values.operations import binary, instance_binary, items_of, mixed, pairs_of
from ..values.python_operators import MAX_ITEMS, bound_length, cannot_combine, python_in_place
from ..values.subscripts import dict_key, index, index_parts, plain_key
from ..values.values import Instance, Scope, has
from .attributes import set_attribute
from .calling import attribute_reader
from .expressions import Context, Run, compile_expression

Signal = Any
RunStatement = Callable[[Scope], Signal]
Store = Callable[[Scope, Any], None]


def note(name: str | None, value: Any) -> None:
    """A value was assigned at module level, or stood there on its own."""
    if type(value) is not Tensor:
        return
    if name in STATE.wrt:
        if not value.requires_grad:
            value.set_requires_grad(True)
        elif not value.is_leaf:
            value.retain_grad()
    node = value.looked_at
    if not node.shape and node.requires_grad and node.op is not LEAF:
        STATE.last = (name, value)


def compile_target(tree: syntax.Node, context: Context, source: Span) -> Store:
    """`assign(scope, value)` of a target; `source`: where its value is from."""
    if isinstance(tree, syntax.Name):
        return name_target(tree.id, context)
    if isinstance(tree, syntax.Tuple | syntax.List):
        return _unpacking(tree, context, source)
    if isinstance(tree, syntax.Attribute):
        return _attribute_target(tree, context)
    assert isinstance(tree, syntax.Subscript)
    return _subscript_target(tree, context)


def _home(name: str, context: Context) -> Callable[[Scope], Scope] | None:
    """Finds the scope of a name that a function declares `global` or `nonlocal`."""
    if name in context.global_names:
        return Scope.outermost
    if name not in context.nonlocal_names:
        return None

    def around(scope: Scope) -> Scope:
        at = scope.outer
        while at is not None and name not in at.names:
            at = at.outer
        return scope if at is None else at

    return around


def name_target(name: str, context: Context) -> Store:
    home = _home(name, context)

    def assign(scope: Scope, value: Any) -> None:
        scope.names[name] = value

    def assign_there(scope: Scope, value: Any) -> None:
        assign(home(scope), value)  # type: ignore[misc]  # only where there is one

    return assign if home is None else assign_there


def _unpacking(tree: Any, context: Context, source: Span) -> Store:
    elements = tree.elements
    star = next((i for i, t in enumerate(elements) if isinstance(t, syntax.Starred)), None)
    targets = [
        compile_target(t.value if isinstance(t, syntax.Starred) else t, context, source)
        for t in elements
    ]
    span = tree.span

    def assign(scope: Scope, value: Any) -> None:
        STATE.span = source
        try:
            items = list(value) if type(value) is tuple else items_of(value)
        except AutodiffError as error:
            raise placed(error, span) from None
        count, number = len(items), len(targets)
        if star is not None:
            if count < number - 1:
                raise fault("E211 values-least-names", count, number - 1, span=span)
            end = count - (number - star - 1)
            items = [*items[:star], items[star:end], *items[end:]]
        elif count != number:
            words = f"too many values to unpack (expected {number})"
            if not items[number:]:
                words = f"not enough values to unpack (expected {number}, got {count})"
            plural = "" if count == 1 else "s"
            raise fault("E211 value-names", count, plural, number, words, span=span)
        for target, item in zip(targets, items, strict=True):
            target(scope, item)

    return assign


def _attribute_target(tree: syntax.Attribute, context: Context) -> Store:
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


def _subscript_target(tree: syntax.Subscript, context: Context) -> Store:
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
        if type(target) is Array:
            from ..values.arrays import write_item

            write_item(target, key, value)
            return
        if isinstance(value, list | tuple) and not STATE.python:
            value = Tensor(calls.node_of_list(list(value)))
        if not isinstance(value, Tensor | bool | int | float):
            raise fault("E208 cannot-written-into-tensor", kind_of(value))
        if key is not False:  # PyTorch looks no further
            write_index(target, index_parts(key, False), value)
    elif isinstance(target, list | deque) and not isinstance(target, Instance):
        if isinstance(key, slice) and type(target) is list:
            part, items = plain_key(key), items_of(value)
            try:
                target[part] = items
            except ValueError as error:
                raise fault("E208 slice-takes-other-count", str(error), error=error) from None
            return
        at = key if type(key) is int else index(range(len(target)), key)
        if not -len(target) <= at < len(target):
            raise fault("E210 index-out-range-list", len(target), at=at)
        target[at] = value
    elif isinstance(target, dict) and not isinstance(target, Instance):
        if len(target) >= MAX_ITEMS:
            raise fail("E505", f"a dict of more than {MAX_ITEMS} items", help="use a tensor")
        target[dict_key(key)] = value
    else:
        setter = getattr(type(target), "set_item", None)
        if setter is None:
            raise fault("E208 does-not-take-assignments", kind_of(target))
        setter(target, key, value)


_ATOMS = frozenset({syntax.Constant, syntax.NumList, syntax.Name})
_ARITHMETIC = frozenset(
    {syntax.UnaryOp, syntax.BinOp, syntax.List, syntax.IfExp, syntax.Compare, syntax.BoolOp}
)


def _is_literal_tree(tree: syntax.Node) -> bool:
    """Whether an expression is only literals, names and arithmetic: its number is a leaf."""
    pending = [tree]
    while pending:
        node = pending.pop()
        kind = type(node)
        if kind in _ATOMS:
            continue
        if kind in _ARITHMETIC:
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


def literal_maker(tree: syntax.Node) -> Callable[[Any], Any]:
    """What turns the value of a module-level assignment of a native file into leaves."""
    if isinstance(tree, syntax.Tuple):
        makers = [literal_maker(t) for t in tree.elements]
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


_NAMING = (syntax.Name, syntax.Tuple, syntax.List)


def compile_assign(tree: syntax.Assign, context: Context) -> RunStatement:
    """The closure of `a = b = value`."""
    noted = context.module_level
    first = tree.targets[0] if len(tree.targets) == 1 else tree
    named = isinstance(first, _NAMING) or all(isinstance(t, _NAMING) for t in tree.targets)
    make = literal_maker(tree.value) if noted and named and not STATE.python else None
    if make is not None and type(tree.value) is syntax.NumList:
        numbers: Any = tree.value.values if tree.value.array is None else tree.value.array
        value_run = lambda scope: numbers  # noqa: E731 - the leaf copies them
    else:
        value_run = compile_expression(tree.value, context)
    if isinstance(first, syntax.Name):
        return _assign_name(first.id, value_run, make, name_target(first.id, context), noted)
    targets = [compile_target(t, context, tree.value.span) for t in tree.targets]
    names = [t.id for t in tree.targets if isinstance(t, syntax.Name)] if noted else []
    many = (
        [
            n
            for t in tree.targets
            if isinstance(t, syntax.Tuple | syntax.List)
            for n in [t.id if isinstance(t, syntax.Name) else "" for t in t.elements]
        ]
        if noted
        else []
    )
    pairs = isinstance(tree.value, syntax.Tuple) and len(tree.targets) == 1 and bool(many)

    def run(scope: Scope) -> Signal:
        value = value_run(scope)
        if make is not None:
            value = make(value)
        if STATE.overrides:
            for name in names:
                if name in STATE.overrides:
                    value = overridden(name, value)
            if pairs and isinstance(value, tuple):
                value = tuple(
                    overridden(n, v) if n in STATE.overrides else v
                    for n, v in zip(many, value, strict=False)
                )
        for assign in targets:
            assign(scope, value)
        if noted:
            if type(value) is Tensor:
                note(None, value)
                for name in reversed(names):
                    note(name, value)
            elif type(value) is tuple and many:
                for name, item in zip(many, value, strict=False):
                    note(name, item)
        return None

    return run


def _assign_name(
    name: str, value_run: Run, make: Callable[[Any], Any] | None, store: Store, noted: bool
) -> RunStatement:
    """`name = value`."""

    def run(scope: Scope) -> Signal:
        value = value_run(scope)
        if make is not None:
            value = make(value)
        if noted and name in STATE.overrides:
            value = overridden(name, value)
        store(scope, value)
        if noted and type(value) is Tensor:
            note(name, value)
        return None

    return run


def overridden(name: str, value: Any) -> Any:
    """What `-D name=...` puts in place of a value: it stays the leaf, constant or number it was."""
    return STATE.overrides.pop(name)(value)


def compile_annotated(tree: syntax.AnnAssign, context: Context) -> RunStatement:
    if tree.value is None:
        return lambda scope: None
    return compile_assign(syntax.Assign([tree.target], tree.value, tree.span), context)


def augmented(symbol: str, current: Any, operand: Any) -> Any:
    """`current op= operand`: in place for tensors and lists, else a new value."""
    if isinstance(current, Tensor) and not mixed(current, operand):
        literal = current.accumulator is not None and current.accumulator.literal and STATE.grad
        if not literal:
            current.check_writable()
            result = binary(symbol, current, operand)
            if type(current) is not Array:
                _check_in_place(symbol, current, result)
            elif not current.shape:  # a number of NumPy's
                return result
            else:
                from ..values.arrays import as_numpy, in_place

                with as_numpy(partial(in_place, symbol), current, operand):
                    _check_in_place(symbol, current, result)
            current.write(result.node, result.node)
            return current
    if isinstance(current, list | deque) and symbol == "+":
        current.extend(items_of(operand))
        if len(current) > MAX_ITEMS:
            raise fail("E505", f"a list of more than {MAX_ITEMS} items", help="use a tensor")
        return current
    if isinstance(current, Instance) or isinstance(operand, Instance):
        return instance_binary(symbol, current, operand, True)
    if isinstance(current, dict) and symbol == "|" and type(current) is not Counter:
        guarded("dict.update", lambda items: current.update(pairs_of(items)), [operand], {})
        return current
    changes = isinstance(current, list | deque | set | dict)
    try:
        return (python_in_place if changes else binary)(symbol, current, operand)
    except AutodiffError as error:
        if error.which.startswith("E208 symbol-cannot-combine"):
            raise cannot_combine(f"{symbol}=", current, operand) from None
        raise


def _check_in_place(symbol: str, current: Tensor, result: Tensor) -> None:
    if result.shape != current.shape:
        raise fault(
            "E308 would-change-shape-tensor-from", symbol, tuple(current.shape), tuple(result.shape)
        )
    calls.check_storable(f"{symbol}=", result.dtype, current)


def compile_augmented(tree: syntax.AugAssign, context: Context) -> RunStatement:
    operand_run = compile_expression(tree.value, context)
    target = tree.target
    symbol = tree.op
    span = tree.span
    if isinstance(target, syntax.Attribute):
        owner_run = compile_expression(target.value, context)
        name, read = target.attr, attribute_reader(target)

        def run_attribute(scope: Scope) -> Signal:
            owner = owner_run(scope)
            current = read(owner)
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
                current = index(owner, key)
                operand = operand_run(scope)
                STATE.span = span
                result = augmented(symbol, current, operand)
                if not (
                    isinstance(owner, Tensor)
                    and isinstance(result, Tensor)  # an element of an array is a number
                    and result.storage is not None
                    and result.storage is owner.storage
                ):
                    set_item(owner, key, result)
                else:
                    owner.count_change()  # Python assigns the item that was changed
                    if current.steps.last[0].key == "whole_view" and owner.requires_grad:
                        owner.node.mark().name = "CopyBackwards"
            except AutodiffError as error:
                raise placed(with_subject(error, target), span) from None
            return None

        return run_item
    assigned = target.id if isinstance(target, syntax.Name) else ""
    noted = context.module_level
    load = compile_expression(target, context)
    store = name_target(assigned, context)
    pseudo = syntax.BinOp(target, symbol, tree.value, span, span)

    def run(scope: Scope) -> Signal:
        current = load(scope)
        operand = operand_run(scope)
        STATE.span = span
        try:
            if (
                symbol == "+"
                and type(current) is type(operand) is str
                and scope.names.get(assigned, operand) is current
            ):
                bound_length(len(current) + len(operand), str)
                scope.names[assigned] = None  # Python extends a text that only one name has
                current += operand
                value = current
            else:
                value = augmented(symbol, current, operand)
            store(scope, value)
        except AutodiffError as error:
            raise placed_operator(error, pseudo, current, operand) from None
        if noted:
            note(assigned, value)
        return None

    return run


def compile_delete(tree: syntax.Delete, context: Context) -> RunStatement:
    removers = [_remover(t, context) for t in tree.targets]

    def run(scope: Scope) -> Signal:
        for remove in removers:
            remove(scope)
        return None

    return run


def delete_item(target: Any, key: Any, span: Any = None) -> None:
    """`del target[key]`."""
    if not has(target, "__delitem__"):
        raise fault("E208 items-cannot-deleted", kind_of(target), span=span)
    try:
        if isinstance(key, slice) and not isinstance(target, Instance):
            key = plain_key(key)
        del target[key]
    except (KeyError, IndexError, TypeError) as error:
        kind = type(error).__name__
        raise fault("E210 there-no-item", text(key), kind=kind, span=span) from None
    except AutodiffError as error:
        raise placed(error, span) from None


def delete_attribute(value: Any, name: str, span: Any = None) -> None:
    """`del value.name`."""
    if isinstance(value, Tensor) and name == "grad":
        value.grad = None
        return
    own = getattr(type(value), "delete_attribute", None)
    if own is not None:
        try:
            own(value, name)
        except AutodiffError as error:
            raise placed(error, span) from None
        return
    raise fault("E207 no-attribute-can-deleted", kind_of(value), name=name, span=span)


def _remover(tree: syntax.Node, context: Context) -> Callable[[Scope], None]:
    if isinstance(tree, syntax.Name):
        home = _home(tree.id, context)

        def remove_name(scope: Scope) -> None:
            scope = scope if home is None else home(scope)
            if scope.names.pop(tree.id, scope) is scope:
                raise fault("E201 name-not-defined", tree=tree, span=tree.span)

        return remove_name
    if isinstance(tree, syntax.Subscript):
        owner = compile_expression(tree.value, context)
        key_run = compile_expression(tree.index, context)

        return lambda scope: delete_item(owner(scope), key_run(scope), tree.span)
    if isinstance(tree, syntax.Attribute):
        holder = compile_expression(tree.value, context)

        def remove_attribute(scope: Scope) -> None:
            delete_attribute(holder(scope), tree.attr, tree.span)

        return remove_attribute
    assert isinstance(tree, syntax.Tuple | syntax.List)
    parts = [_remover(t, context) for t in tree.elements]

    def remove_all(scope: Scope) -> None:
        for part in parts:
            part(scope)

    return remove_all

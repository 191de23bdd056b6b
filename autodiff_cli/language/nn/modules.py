"""`torch.nn.Module`: values whose parameters, buffers and modules are found by assignment.

A module keeps parameters, buffers and modules apart from its other attributes, each in the order
of assignment; everything that walks over modules meets each tensor and each module once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from ...autograd.tensor import Tensor
from ...errors import AutodiffError, fault
from ...graph.state import STATE
from ..values.dialect import kind_of
from ..values.formatting import represent
from ..values.functions import call_value
from ..values.housekeeping import ended
from ..values.user_classes import Object
from ..values.values import Method

Hooks = OrderedDict[int, Any]


class CallHook:
    """A hook of calls that is given their `keywords` too, or runs `always`: after errors too."""

    __slots__ = ("always", "function", "keywords")

    def __init__(self, function: Any, keywords: bool, always: bool):
        self.function = function
        self.keywords = keywords
        self.always = always


class Hooked:
    """Tables of hooks of calls: those of all modules, or with those of `module` too."""

    before: Hooks
    after: Hooks
    reverse: Hooks
    reverse_before: Hooks
    reverse_last: Hooks  # of the function that made the result
    full: bool | None = None  # whether backward hooks are full ones, as the first was

    def __init__(self, shared: Hooked | None = None, module: Module | None = None):
        for name in ("before", "after", "reverse", "reverse_before", "reverse_last"):
            tables = [] if shared is None else [getattr(shared, name), getattr(module, name)]
            setattr(self, name, OrderedDict((k, v) for table in tables for k, v in table.items()))


class Module(Object, Hooked):
    """A value of `nn.Module` or of a class below it."""

    def __new__(cls, *args: Any) -> Any:
        self = super().__new__(cls)
        self.prepare()
        return self

    def prepare(self) -> None:
        """Nothing is in it yet."""
        self.fields["training"] = True
        self.parameters: dict[str, Tensor | None] = {}
        self.buffers: dict[str, Tensor | None] = {}
        self.modules: dict[str, Any] = {}
        self.transient: set[str] = set()
        Hooked.__init__(self)
        # hooks before and after a state is loaded, and before and after it is taken
        self.loading: Hooks = OrderedDict()
        self.loaded: Hooks = OrderedDict()
        self.storing: Hooks = OrderedDict()
        self.stored: Hooks = OrderedDict()
        self.ready = False

    def held(self) -> list[Any]:
        return [
            *self.fields.values(),
            *self.parameters.values(),
            *self.buffers.values(),
            *self.modules.values(),
        ]

    def copy_state(self, other: Any, again: Callable[[Any], Any]) -> None:
        super().copy_state(other, again)
        self.ready = other.ready
        self.transient.update(other.transient)
        self.before.update(other.before)
        self.after.update(other.after)
        self.reverse.update(other.reverse)
        self.reverse_before.update(other.reverse_before)
        self.reverse_last.update(other.reverse_last)
        for theirs, ours in (
            (other.parameters, self.parameters),
            (other.buffers, self.buffers),
            (other.modules, self.modules),
        ):
            ours.update({n: again(v) for n, v in theirs.items()})

    # -- attributes ---------------------------------------------------------------------------

    def read(self, name: str) -> Any:
        for table in (self.parameters, self.modules, self.buffers):
            if name in table and name not in self.fields and name not in self.cls.flat:
                return table[name]
        return super().read(name)

    def part(self, name: str) -> Any:
        """A parameter, a module or a buffer: `nn.Module.__getattr__`."""
        for table in (self.parameters, self.modules, self.buffers):
            if name in table:
                return table[name]
        return self.missing(name)

    def missing(self, name: str) -> Any:
        inner = _INNER.get(name)
        if inner is not None:
            return inner(self)
        return super().missing(name)

    def assign(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor) and value.is_parameter:
            self._check_ready("parameters")
            self._forget(name, self.parameters)
            if name not in self.parameters and name in self.cls.flat:
                raise fault("E205 attribute-already", self.cls.name, name=name)
            self.parameters[name] = value
        elif name in self.parameters:
            if value is not None:
                raise fault("E208 parameter", kind_of(value), name=name)
            self.parameters[name] = None
        elif isinstance(value, Module):
            self._check_ready("modules")
            self._forget(name, self.modules)
            self.modules[name] = value
        elif name in self.modules:
            if value is not None:
                raise fault("E208 module-2", kind_of(value), name=name)
            self.modules[name] = None
        elif name in self.buffers:
            if value is not None and not isinstance(value, Tensor):
                raise fault("E208 buffer", kind_of(value), name=name)
            self.buffers[name] = value
        else:
            super().assign(name, value)

    def forget(self, name: str) -> None:
        for table in (self.parameters, self.modules, self.buffers):
            if name in table:
                del table[name]
                return
        super().forget(name)

    def _check_ready(self, what: str) -> None:
        if not self.ready:
            raise fault("E207 cannot-assigned-before-super", self.cls.name, what=what)

    def _forget(self, name: str, keep: dict[str, Any] | None = None) -> None:
        """Remove a name from all tables except `keep`, where it keeps its place."""
        for table in (self.fields, self.parameters, self.modules, self.buffers):
            if table is not keep:
                table.pop(name, None)
        self.transient.discard(name)

    # -- calling ------------------------------------------------------------------------------

    def call(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if self.cls.flat["__call__"] is not CALL:
            return super().call(args, kwargs)
        return self.run(args, kwargs)

    def run(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """`forward` between its hooks."""
        result, called = None, 0
        hooks: Any = self if STATE.module_hooks is None else Hooked(STATE.module_hooks, self)
        try:
            for hook in list(hooks.before.values()):
                given = self._told(hook, args, kwargs)
                if given is not None:
                    if type(hook) is CallHook:
                        if not (isinstance(given, tuple) and len(given) == 2):
                            raise fault("E208 pre-hook-keywords", kind_of(given), represent(given))
                        args, kwargs = list(given[0]), dict(given[1])
                    else:
                        args = list(given) if isinstance(given, tuple) else [given]
            watched = None
            if hooks.reverse or hooks.reverse_before:
                from .module_hooks import Watched

                watched = Watched(self, hooks)
                args = watched.entering(args)
            forward = self.fields.get("forward")
            if forward is not None:
                result = call_value(forward, args, kwargs)
            else:
                result = call_value(self.get_attribute("forward"), args, kwargs)
            for hook in list(hooks.after.values()):
                called += 1
                given = self._told(hook, args, kwargs, result)
                if given is not None:
                    result = given
            result = result if watched is None else watched.leaving(result)
            if hooks.reverse_last:
                from .module_hooks import watch_last

                watch_last(self, hooks, result)
            return result
        except AutodiffError as error:
            for hook in [] if ended(error) else list(hooks.after.values())[called:]:
                if type(hook) is CallHook and hook.always:
                    with suppress(AutodiffError):
                        given = self._told(hook, args, kwargs, result)
                        result = result if given is None else given
            raise

    def _told(self, hook: Any, args: list[Any], kwargs: dict[str, Any], *result: Any) -> Any:
        if type(hook) is not CallHook:
            return call_value(hook, [self, tuple(args), *result], {})
        given = [kwargs] if hook.keywords else []
        return call_value(hook.function, [self, tuple(args), *given, *result], {})

    # -- walking ------------------------------------------------------------------------------

    def named_modules(self, prefix: str = "", once: bool = True) -> Iterator[tuple[str, Module]]:
        """This module and all below it, parents first, each once or under all of its names."""
        seen: set[int] = set()
        pending: list[tuple[str, Module]] = [(prefix, self)]
        while pending:
            path, module = pending.pop()
            if once and id(module) in seen:
                continue
            seen.add(id(module))
            yield path, module
            below = [(_joined(path, n), m) for n, m in module.modules.items() if m is not None]
            pending.extend(reversed(below))

    def named(
        self, table: str, prefix: str = "", recurse: bool = True, once: bool = True
    ) -> list[tuple[str, Tensor]]:
        """Tensors of this module and those below, with their paths."""
        seen: set[int] = set()
        found: list[tuple[str, Tensor]] = []
        for path, module in self.named_modules(prefix, once) if recurse else [(prefix, self)]:
            for name, tensor in getattr(module, table).items():
                if tensor is not None and not (once and id(tensor) in seen):
                    seen.add(id(tensor))
                    found.append((_joined(path, name), tensor))
        return found


def described(self: Module) -> str:
    """`repr(module)`."""
    extra = str(call_value(self.get_attribute("extra_repr"), [], {}))
    name = str(call_value(self.get_attribute("_get_name"), [], {}))
    lines = [f"({name}): {indented(module)}" for name, module in self.modules.items()]
    return laid_out(name, extra, lines)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def indented(value: Any) -> str:
    """The text of a value inside that of another: later lines are moved in."""
    return represent(value).replace("\n", "\n  ")


def laid_out(name: str, extra: str, lines: list[str]) -> str:
    """`Name(extra)`, or one line for each part of it."""
    parts = extra.split("\n") if extra else []
    if not parts and not lines:
        return f"{name}()"
    if len(parts) == 1 and not lines:
        return f"{name}({extra})"
    return f"{name}(\n  " + "\n  ".join([*parts, *lines]) + "\n)"


_INNER: dict[str, Callable[[Module], dict[Any, Any]]] = {
    "_parameters": lambda m: m.parameters,
    "_buffers": lambda m: m.buffers,
    "_modules": lambda m: m.modules,
    "_forward_pre_hooks": lambda m: m.before,
    "_forward_hooks": lambda m: m.after,
    "_backward_hooks": lambda m: m.reverse or m.reverse_last,
    "_backward_pre_hooks": lambda m: m.reverse_before,
}


CALL = Method("__call__", lambda self, *args, **kwargs: self.run(list(args), kwargs))

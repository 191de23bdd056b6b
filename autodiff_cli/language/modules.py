"""`torch.nn.Module`: values whose parameters, buffers and modules are found by assignment.

A module keeps parameters, buffers and modules apart from its other attributes, each in the order
of assignment; everything that walks over modules meets each tensor and each module once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..autograd.tensor import Tensor
from ..errors import AutodiffError, fail
from ..suggest import suggest
from .attributes import Handle
from .classes import BoundMethod, Instance, UserClass, bound, set_property
from .functions import call_value
from .kinds import kind_of
from .operations import truth
from .text import represent
from .values import Builtin


class KeywordHook:
    """A hook that is given the keyword arguments of a call too."""

    __slots__ = ("function",)

    def __init__(self, function: Any):
        self.function = function


class Module(Instance):
    """A value of `nn.Module` or of a class below it."""

    __slots__ = (
        "after",
        "before",
        "buffers",
        "loaded",
        "modules",
        "parameters",
        "ready",
        "reverse",
        "reverse_before",
        "transient",
    )

    def __init__(self, cls: UserClass):
        super().__init__(cls)
        self.fields["training"] = True
        self.parameters: dict[str, Tensor | None] = {}
        self.buffers: dict[str, Tensor | None] = {}
        self.modules: dict[str, Any] = {}
        self.transient: set[str] = set()
        self.before: dict[int, Any] = {}
        self.after: dict[int, Any] = {}
        self.reverse: dict[int, Any] = {}
        self.reverse_before: dict[int, Any] = {}
        self.loaded: dict[int, Any] = {}  # hooks for after a state was loaded
        self.ready = False

    def held(self) -> list[Any]:
        return [
            *self.fields.values(),
            *self.parameters.values(),
            *self.buffers.values(),
            *self.modules.values(),
        ]

    # -- attributes ---------------------------------------------------------------------------

    def get_attribute(self, name: str) -> Any:
        for table in (self.fields, self.parameters, self.modules, self.buffers):
            if name in table:
                return table[name]
        if name == "__class__":
            return self.cls
        inner = _INNER.get(name)
        if inner is not None:
            return dict(inner(self))
        if self.cls.lookup(name) is None and self.cls.lookup("__getattr__") is None:
            raise self._no_attribute(name)
        return bound(self, self.cls, name, None)

    def _no_attribute(self, name: str) -> AutodiffError:
        own = [*self.parameters, *self.modules, *self.buffers, *self.fields]
        methods = [n for c in self.cls.mro for n in c.names if not n.startswith("_")]
        close = suggest(name, [*own, *methods])
        help = f"did you mean `.{close[0]}`?" if close else f"it has: {', '.join(own[:12])}"
        notes = (f"PyTorch: '{self.cls.name}' object has no attribute '{name}'",)
        return fail("E207", f"a {self.cls.name} has no attribute `{name}`", help=help, notes=notes)

    def set_attribute(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor) and value.is_parameter:
            self._check_ready("parameters")
            self._forget(name, self.parameters)
            self.parameters[name] = value
        elif name in self.parameters:
            if value is not None:
                raise fail(
                    "E208",
                    f"`{name}` is a parameter, it cannot become {kind_of(value)}",
                    help="write `nn.Parameter(...)` around the tensor, or change `.data`",
                )
            self.parameters[name] = None
        elif isinstance(value, Module):
            self._check_ready("modules")
            self._forget(name, self.modules)
            self.modules[name] = value
        elif name in self.modules:
            if value is not None:
                raise fail(
                    "E208",
                    f"`{name}` is a module, it cannot become {kind_of(value)}",
                    help="assign a module or None",
                )
            self.modules[name] = None
        elif name in self.buffers:
            if value is not None and not isinstance(value, Tensor):
                raise fail(
                    "E208",
                    f"`{name}` is a buffer, it cannot become {kind_of(value)}",
                    help="assign a tensor or None",
                )
            self.buffers[name] = value
        elif name in self.fields or not set_property(self, name, value):
            self.fields[name] = value

    def _check_ready(self, what: str) -> None:
        if not self.ready:
            raise fail(
                "E207",
                f"{what} cannot be assigned before `super().__init__()` has run",
                help=f"call `super().__init__()` first in `{self.cls.name}.__init__`",
            )

    def _forget(self, name: str, keep: dict[str, Any] | None = None) -> None:
        """What is assigned again keeps its place in the table where it goes."""
        for table in (self.fields, self.parameters, self.modules, self.buffers):
            if table is not keep:
                table.pop(name, None)
        self.transient.discard(name)

    # -- calling ------------------------------------------------------------------------------

    def call(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        method = self.cls.lookup("__call__")
        if method is not CALL:
            return call_value(BoundMethod(self, method), args, kwargs)
        return self.run(args, kwargs)

    def run(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """`forward` between its hooks."""
        for hook in list(self.before.values()):
            if type(hook) is KeywordHook:
                given = call_value(hook.function, [self, tuple(args), kwargs], {})
                if given is not None:
                    args, kwargs = list(given[0]), dict(given[1])
                continue
            given = call_value(hook, [self, tuple(args)], {})
            if given is not None:
                args = list(given) if isinstance(given, tuple) else [given]
        watched = None
        if self.reverse or self.reverse_before:
            from .module_hooks import Watched

            watched = Watched(self)
            args = watched.entering(args)
        forward = self.fields.get("forward")
        if forward is not None:
            result = call_value(forward, args, kwargs)
        else:
            result = call_value(self.cls.lookup("forward"), [self, *args], kwargs)
        for hook in list(self.after.values()):
            if type(hook) is KeywordHook:
                given = call_value(hook.function, [self, tuple(args), kwargs, result], {})
            else:
                given = call_value(hook, [self, tuple(args), result], {})
            if given is not None:
                result = given
        return result if watched is None else watched.leaving(result)

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
        self,
        table: Callable[[Module], dict[str, Any]],
        prefix: str = "",
        recurse: bool = True,
        once: bool = True,
    ) -> list[tuple[str, Tensor]]:
        """Tensors of this module and those below, with their paths."""
        seen: set[int] = set()
        found: list[tuple[str, Tensor]] = []
        for path, module in self.named_modules(prefix, once) if recurse else [(prefix, self)]:
            for name, tensor in table(module).items():
                if tensor is not None and not (once and id(tensor) in seen):
                    seen.add(id(tensor))
                    found.append((_joined(path, name), tensor))
        return found

    # -- printing -----------------------------------------------------------------------------

    def describe(self) -> str:
        for name in ("__repr__", "__str__"):
            method = self.cls.lookup(name)
            if method is not None:
                return str(call_value(BoundMethod(self, method), [], {}))
        extra = str(call_value(bound(self, self.cls, "extra_repr", None), [], {}))
        lines = [f"({name}): {indented(module)}" for name, module in self.modules.items()]
        return laid_out(self.cls.name, extra, lines)


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
}


def _parameters_of(module: Module) -> dict[str, Any]:
    return module.parameters


def _buffers_of(module: Module) -> dict[str, Any]:
    return module.buffers


# -- methods --------------------------------------------------------------------------------------


def _init(self: Module) -> None:
    self.ready = True


def _call(self: Module, *args: Any, **kwargs: Any) -> Any:
    return self.run(list(args), kwargs)


def _forward(self: Module, *args: Any, **kwargs: Any) -> Any:
    raise fail(
        "E207",
        f'module [{self.cls.name}] is missing the required "forward" function',
        help=f"define `def forward(self, x):` in `{self.cls.name}`",
    )


def check_name(self: Module, name: Any, what: str) -> str:
    """A name under which something can be registered."""
    if not isinstance(name, str) or not name or "." in name:
        raise fail(
            "E205",
            f"the name of a {what} is a string without a dot, not {represent(name)[:40]}",
            help=f"for example `register_{what}('a', ...)`",
        )
    taken = name in self.fields or self.cls.lookup(name) is not None
    if taken and name not in self.parameters and name not in self.buffers:
        raise fail(
            "E205",
            f"a {self.cls.name} has an attribute `{name}` already",
            help="choose another name",
        )
    other = self.parameters if what == "buffer" else self.buffers
    if name in other:
        raise fail(
            "E205",
            f"attribute '{name}' already exists: it is a "
            f"{'parameter' if what == 'buffer' else 'buffer'} of this {self.cls.name}",
            help="choose another name",
        )
    self._check_ready(f"{what}s")
    return name


def _register_parameter(self: Module, name: Any, param: Any) -> None:
    name = check_name(self, name, "parameter")
    if param is None:
        self.parameters[name] = None
    elif isinstance(param, Tensor) and param.is_parameter:
        self.set_attribute(name, param)
    else:
        raise fail(
            "E208",
            f"`{name}` must be a Parameter or None, not {kind_of(param)}",
            help="write `nn.Parameter(...)` around the tensor",
        )


def _register_buffer(self: Module, name: Any, tensor: Any, persistent: Any = True) -> None:
    name = check_name(self, name, "buffer")
    if tensor is not None and not isinstance(tensor, Tensor):
        raise fail(
            "E208",
            f"the buffer `{name}` must be a tensor or None, not {kind_of(tensor)}",
            help="write `torch.tensor(...)` around it",
        )
    self._forget(name, self.buffers)
    self.buffers[name] = tensor
    if not truth(persistent):
        self.transient.add(name)


def add_module(self: Module, name: Any, module: Any) -> None:
    """`add_module(name, module)`."""
    name = check_name(self, name, "module")
    if module is not None and not isinstance(module, Module):
        raise fail(
            "E208",
            f"`{name}` must be a module, not {kind_of(module)}",
            help="give a value such as `nn.Linear(2, 2)`, with its parentheses",
        )
    self._forget(name, self.modules)
    self.modules[name] = module


def _named_parameters(
    self: Module, prefix: Any = "", recurse: Any = True, remove_duplicate: Any = True
) -> list[tuple[str, Tensor]]:
    return self.named(_parameters_of, prefix, truth(recurse), truth(remove_duplicate))


def _named_buffers(
    self: Module, prefix: Any = "", recurse: Any = True, remove_duplicate: Any = True
) -> list[tuple[str, Tensor]]:
    return self.named(_buffers_of, prefix, truth(recurse), truth(remove_duplicate))


def _parameters(self: Module, recurse: Any = True) -> list[Tensor]:
    return [tensor for _, tensor in self.named(_parameters_of, "", truth(recurse))]


def _buffers(self: Module, recurse: Any = True) -> list[Tensor]:
    return [tensor for _, tensor in self.named(_buffers_of, "", truth(recurse))]


def _named_children(self: Module) -> list[tuple[str, Module]]:
    unique: dict[int, tuple[str, Module]] = {}
    for name, module in self.modules.items():
        if module is not None:
            unique.setdefault(id(module), (name, module))
    return list(unique.values())


def _named_modules(
    self: Module, memo: Any = None, prefix: Any = "", remove_duplicate: Any = True
) -> list[tuple[str, Module]]:
    return list(self.named_modules(prefix, truth(remove_duplicate)))


def _train(self: Module, mode: Any = True) -> Module:
    flag = truth(mode)
    self.fields["training"] = flag
    for _, module in _named_children(self):
        call_value(bound(module, module.cls, "train", None), [flag], {})
    return self


def _zero_grad(self: Module, set_to_none: Any = True) -> None:
    from .optimizers import clear_gradient

    keep = not truth(set_to_none)
    for tensor in _parameters(self):
        clear_gradient(tensor, keep)


def _requires_grad_(self: Module, requires_grad: Any = True) -> Module:
    flag = truth(requires_grad)
    for tensor in _parameters(self):
        tensor.set_requires_grad(flag)
    return self


def _apply(self: Module, fn: Any) -> Module:
    for _, module in _named_children(self):
        _apply(module, fn)
    call_value(fn, [self], {})
    return self


def _get_submodule(self: Module, target: Any) -> Any:
    found: Any = self
    for name in target.split(".") if target else []:
        found = found.get_attribute(name)
        if not isinstance(found, Module):
            raise fail("E207", f"`{name}` is no module", help="list them: `named_modules()`")
    return found


def _set_submodule(self: Module, target: Any, module: Any, strict: Any = False) -> None:
    path, _, name = target.rpartition(".")
    owner = _get_submodule(self, path)
    if truth(strict):
        owner.get_attribute(name)
    owner.set_attribute(name, module)


def _get_tensor(self: Module, target: Any) -> Any:
    path, _, name = target.rpartition(".")
    return _get_submodule(self, path).get_attribute(name)


def _hook(table: Callable[[Module], dict[int, Any]]) -> Callable[..., Handle]:
    def register(
        self: Module, hook: Any, *, prepend: Any = False, with_kwargs: Any = False, **others: Any
    ) -> Handle:
        hooks = table(self)
        earlier = dict(hooks)
        handle = Handle(hooks, KeywordHook(hook) if truth(with_kwargs) else hook)
        if truth(prepend):
            for key in earlier:
                hooks[key] = hooks.pop(key)
        return handle

    return register


def _state_method(name: str) -> Callable[..., Any]:
    def run(self: Module, *args: Any, **kwargs: Any) -> Any:
        from .module_state import METHODS

        return METHODS[name](self, *args, **kwargs)

    return run


_METHODS: dict[str, Callable[..., Any]] = {
    "__init__": lambda self, *args, **kwargs: _init(self),
    "__call__": _call,
    "forward": _forward,
    "register_parameter": _register_parameter,
    "register_buffer": _register_buffer,
    "register_module": add_module,
    "add_module": add_module,
    "parameters": _parameters,
    "named_parameters": _named_parameters,
    "buffers": _buffers,
    "named_buffers": _named_buffers,
    "children": lambda self: [module for _, module in _named_children(self)],
    "named_children": _named_children,
    "modules": lambda self: [module for _, module in self.named_modules()],
    "named_modules": _named_modules,
    "get_submodule": _get_submodule,
    "set_submodule": _set_submodule,
    "get_parameter": _get_tensor,
    "get_buffer": _get_tensor,
    "train": _train,
    "eval": lambda self: call_value(bound(self, self.cls, "train", None), [False], {}),
    "zero_grad": _zero_grad,
    "requires_grad_": _requires_grad_,
    "apply": _apply,
    "extra_repr": lambda self: "",
    "register_forward_pre_hook": _hook(lambda m: m.before),
    "register_forward_hook": _hook(lambda m: m.after),
    "register_full_backward_hook": _hook(lambda m: m.reverse),
    "register_backward_hook": _hook(lambda m: m.reverse),
    "register_load_state_dict_post_hook": _hook(lambda m: m.loaded),
    "register_full_backward_pre_hook": _hook(lambda m: m.reverse_before),
    "cpu": lambda self: self,
    "share_memory": lambda self: self,
    "compile": lambda self, *args, **kwargs: None,
    **{
        name: _state_method(name)
        for name in (
            "state_dict",
            "load_state_dict",
            "to",
            "double",
            "float",
            "half",
            "cuda",
            "type",
        )
    },
}

MODULE = UserClass("Module", [], {n: Builtin(n, f) for n, f in _METHODS.items()}, None)
MODULE.make = Module
MODULE.fixed = True
CALL = MODULE.names["__call__"]

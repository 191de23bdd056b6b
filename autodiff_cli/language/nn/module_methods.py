"""The methods of `nn.Module`, and the class itself."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...autograd.tensor import Tensor
from ...errors import fail, fault
from ...graph.state import STATE
from ...suggest import suggest
from ..values.dialect import kind_of
from ..values.factories import Uninitialized
from ..values.formatting import represent
from ..values.functions import call_value
from ..values.iterators import Lazy
from ..values.operations import truth
from ..values.providers import from_above
from ..values.user_classes import library_class
from ..values.values import Builtin, Handle, UserFunction, builtins_of
from .modules import CALL, CallHook, Hooked, Hooks, Module, described
from .optimizers import clear_gradient


def _init(self: Module, *args: Any, **kwargs: Any) -> None:
    name = self.cls.name
    if kwargs:
        raise fault("E205 module-unexpected-keyword", name, next(iter(kwargs)))
    if args:
        raise fault("E205 module-takes-nothing", name, len(args) + 1)
    self.ready = True


def _forward(self: Module, *args: Any, **kwargs: Any) -> Any:
    own = [name for name, value in self.cls.flat.items() if isinstance(value, UserFunction)]
    close = suggest("forward", own, 1)
    help = f"write `forward` for `{close[0]}`" if close else (
        f"define `def forward(self, x):` in `{self.cls.name}`"
    )  # fmt: skip
    raise fault("E207 module-missing-required-forward", self.cls.name, help)


def check_name(self: Module, name: Any, what: str) -> str:
    """A name under which something can be registered."""
    if not isinstance(name, str) or not name or "." in name:
        said = f'{what} name can\'t be empty string ""'
        if name:
            got = f", got: {name}" if what == "module" else ""
            said = f'{what} name can\'t contain "."{got}'
        if not isinstance(name, str):
            said = f"{what} name should be a string. Got {type(name).__name__}"
        raise fail(
            "E205",
            f"the name of a {what} is a string without a dot, not {represent(name)[:40]}",
            help="for example 'a'",
            raises="KeyError" if isinstance(name, str) else "TypeError",
            said=said,
        )
    kinds = {"parameter": self.parameters, "buffer": self.buffers, "module": self.modules}
    taken = any(name in names for names in (self.fields, self.cls.flat, *kinds.values()))
    if taken and name not in kinds[what]:
        raise fault("E205 attribute-already", self.cls.name, name=name)
    self._check_ready(f"{what}s")
    return name


def _register_parameter(self: Module, name: Any, param: Any) -> None:
    name = check_name(self, name, "parameter")
    if param is None:
        self.parameters[name] = None
    elif isinstance(param, Tensor) and param.is_parameter:
        self.set_attribute(name, param)
    else:
        raise fault("E208 parameter-none", kind_of(param), name=name)


def _register_buffer(self: Module, name: Any, tensor: Any, persistent: Any = True) -> None:
    name = check_name(self, name, "buffer")
    if tensor is not None and not isinstance(tensor, Tensor):
        raise fault("E208 buffer-tensor-none", kind_of(tensor), name=name)
    self.buffers[name] = tensor
    self.transient.discard(name)
    if not truth(persistent):
        self.transient.add(name)


def add_module(self: Module, name: Any, module: Any) -> None:
    """`add_module(name, module)`."""
    name = check_name(self, name, "module")
    if module is not None and not isinstance(module, Module):
        raise fault("E208 module", kind_of(module), name=name)
    self.modules[name] = module


def _parameters(self: Module, recurse: Any = True) -> list[Tensor]:
    return [tensor for _, tensor in self.named("parameters", "", truth(recurse))]


def _named_children(self: Module) -> list[tuple[str, Module]]:
    unique: dict[int, tuple[str, Module]] = {}
    for name, module in self.modules.items():
        if module is not None:
            unique.setdefault(id(module), (name, module))
    return list(unique.values())


def _train(self: Module, mode: Any = True) -> Module:
    if not isinstance(mode, bool):
        raise fault("E205 training-mode-expected-boolean")
    flag = mode
    self.fields["training"] = flag
    for _, module in _named_children(self):
        call_value(module.get_attribute("train"), [flag], {})
    return self


def _zero_grad(self: Module, set_to_none: Any = True) -> None:
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


def get_submodule(self: Module, target: Any) -> Any:
    """`get_submodule(target)`."""
    found: Any = self
    for name in target.split(".") if target else []:
        found = found.get_attribute(name)
        if not isinstance(found, Module):
            raise fail("E207", f"`{name}` is no module", help="list them: `named_modules()`")
    return found


def _set_submodule(self: Module, target: Any, module: Any, strict: Any = False) -> None:
    path, _, name = target.rpartition(".")
    if not name:
        raise fault("E205 set_submodule-needs-name")
    owner = get_submodule(self, path)
    if truth(strict):
        owner.get_attribute(name)
    owner.set_attribute(name, module)


def _share_memory(self: Module) -> Module:
    for tensor in (t for table in ("parameters", "buffers") for _, t in self.named(table)):
        if type(tensor) is Uninitialized:
            raise fault("E308 uninitialized-shared", tensor.describe())
    return self


def _getter(table: str) -> Callable[..., Any]:
    def get(self: Module, target: Any) -> Any:
        path, _, name = target.rpartition(".")
        owner = get_submodule(self, path)
        if owner.get_attribute(name) is not getattr(owner, table).get(name):
            raise fault("E207 submodule-holds-no", table=table[:-1], name=name)
        return getattr(owner, table)[name]

    return get


def _hook(table: str) -> Callable[..., Handle]:
    def register(self: Any, hook: Any, prepend: Any = False) -> Handle:
        if table in ("reverse", "reverse_last"):
            full = table == "reverse"
            if self.full is not None and self.full is not full:
                what = "as a global Module hook" if type(self) is Hooked else "on a single Module"
                raise fault("E205 full-and-other-hooks", what)
            self.full = full
        hooks: Hooks = getattr(self, table)
        handle = Handle(hooks, hook)
        if truth(prepend):
            hooks.move_to_end(handle.key, last=False)
        return handle

    return register


def _register_forward_pre_hook(
    self: Module, hook: Any, *, prepend: Any = False, with_kwargs: Any = False
) -> Handle:
    hook = CallHook(hook, True, False) if truth(with_kwargs) else hook
    return _hook("before")(self, hook, prepend)


def _register_forward_hook(
    self: Module,
    hook: Any,
    *,
    prepend: Any = False,
    with_kwargs: Any = False,
    always_call: Any = False,
) -> Handle:
    keywords, always = truth(with_kwargs), truth(always_call)
    hook = CallHook(hook, keywords, always) if keywords or always else hook
    return _hook("after")(self, hook, prepend)


def _register_loading(self: Module, hook: Any, with_module: Any = False) -> Handle:
    alone = Builtin("hook", lambda module, *given: call_value(hook, list(given), {}))
    return _hook("loading")(self, hook if truth(with_module) else alone)


def _everywhere(register: Callable[..., Handle]) -> Callable[..., Handle]:
    """Register a hook of all modules."""

    def run(hook: Any, **options: Any) -> Handle:
        if STATE.module_hooks is None:
            STATE.module_hooks = Hooked()
        return register(STATE.module_hooks, hook, **options)

    return run


SHARED_HOOKS = builtins_of(
    {
        "forward_pre_hook": _everywhere(_hook("before")),
        "forward_hook": _everywhere(_register_forward_hook),
        "full_backward_hook": _everywhere(_hook("reverse")),
        "full_backward_pre_hook": _everywhere(_hook("reverse_before")),
        "backward_hook": _everywhere(_hook("reverse_last")),
    }
)


def _state_method(name: str) -> Callable[..., Any]:
    return lambda *args, **kwargs: from_above("nn.module_state.METHODS")[name](*args, **kwargs)


_ITERATED: dict[str, Callable[..., Any]] = {
    "parameters": _parameters,
    "named_parameters": lambda self, prefix="", recurse=True, remove_duplicate=True: self.named(
        "parameters", prefix, truth(recurse), truth(remove_duplicate)
    ),
    "buffers": lambda self, recurse=True: [
        tensor for _, tensor in self.named("buffers", "", truth(recurse))
    ],
    "named_buffers": lambda self, prefix="", recurse=True, remove_duplicate=True: self.named(
        "buffers", prefix, truth(recurse), truth(remove_duplicate)
    ),
    "children": lambda self: [module for _, module in _named_children(self)],
    "named_children": _named_children,
    "modules": lambda self: [module for _, module in self.named_modules()],
    "named_modules": lambda self, memo=None, prefix="", remove_duplicate=True: list(
        self.named_modules(prefix, truth(remove_duplicate))
    ),
}


def _generator(name: str, function: Callable[..., Any]) -> Callable[..., Lazy]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Lazy:
        found = function(*args, **kwargs)
        return Lazy("generator", iter(found), (found,), function=f"Module.{name}")

    return run


_OF_STATE = """
    state_dict load_state_dict _save_to_state_dict _load_from_state_dict to double float half cuda
    to_empty type
"""
_METHODS: dict[str, Callable[..., Any]] = {
    **{name: _generator(name, function) for name, function in _ITERATED.items()},
    "__init__": _init,
    "forward": _forward,
    "register_parameter": _register_parameter,
    "register_buffer": _register_buffer,
    "register_module": add_module,
    "add_module": add_module,
    "get_submodule": get_submodule,
    "set_submodule": _set_submodule,
    "get_parameter": _getter("parameters"),
    "get_buffer": _getter("buffers"),
    "train": _train,
    "eval": lambda self: call_value(self.get_attribute("train"), [False], {}),
    "zero_grad": _zero_grad,
    "requires_grad_": _requires_grad_,
    "apply": _apply,
    "__getattr__": lambda self, name: self.part(name),
    "__repr__": described,
    "_get_name": lambda self: self.cls.name,
    "extra_repr": lambda self: "",
    "register_forward_pre_hook": _register_forward_pre_hook,
    "register_forward_hook": _register_forward_hook,
    "register_full_backward_hook": _hook("reverse"),
    "register_backward_hook": _hook("reverse_last"),
    "register_load_state_dict_pre_hook": _hook("loading"),
    "_register_load_state_dict_pre_hook": _register_loading,
    "register_load_state_dict_post_hook": _hook("loaded"),
    "register_state_dict_pre_hook": _hook("storing"),
    "register_state_dict_post_hook": _hook("stored"),
    "register_full_backward_pre_hook": _hook("reverse_before"),
    "cpu": lambda self: self,
    "share_memory": _share_memory,
    "compile": lambda self, *args, **kwargs: None,
    **{name: _state_method(name) for name in _OF_STATE.split()},
}

MODULE = library_class("Module", [], _METHODS, Module)
MODULE.names["__call__"] = CALL
MODULE.names["call_super_init"] = False

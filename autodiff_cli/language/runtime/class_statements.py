"""The statement that makes a class: its body runs in a scope of its own, then the class is made of
the names in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import fail, fault
from ..syntax import tree as syntax
from ..syntax.scoping import assigned_names
from ..values.dialect import kind_of, misfit
from ..values.functions import call_value
from ..values.user_classes import OBJECT, SPECIAL, UserClass, bind, special
from ..values.values import Builtin, Instance, Scope, TypeName, UserFunction
from .assignment import name_target
from .expressions import Context, compile_expression
from .statements import compile_block, compile_decorators


def compile_class(tree: syntax.ClassDef, context: Context) -> Callable[[Scope], Any]:
    """The closure of a class statement."""
    _check_body(tree)
    bases = [(compile_expression(b, context), b.span) for b in tree.bases]
    keywords = [(k.name, compile_expression(k.value, context)) for k in tree.keywords]
    names, outer = assigned_names(tree.body)
    path = context.path + tree.name
    inner = Context(frozenset(names), f"{path}.")
    inner.in_class = True
    inner.declare(tree.body, outer)
    block = compile_block(tree.body, inner)
    decorated = compile_decorators(tree.decorators, context)
    annotated = {
        s.target.id: s.annotation.span.text
        for s in tree.body
        if isinstance(s, syntax.AnnAssign) and isinstance(s.target, syntax.Name)
    }
    store = name_target(tree.name, context)
    first = tree.body[0]
    is_text = isinstance(first, syntax.ExprStmt) and isinstance(first.value, syntax.Constant)
    words = first.value.value if is_text else None  # type: ignore[attr-defined]  # a constant

    def run(scope: Scope) -> Any:
        parents = [as_base(base(scope), span) for base, span in bases]
        given = {str(name): part(scope) for name, part in keywords}
        cell = Scope(scope.outer if context.in_class else scope)
        body = Scope(cell)
        body.names = (OBJECT, *parents)[-1].begin(parents)
        body.names["__qualname__"] = path
        block(body)
        body.names.setdefault("__doc__", words if isinstance(words, str) else None)
        made: Any = make_class(tree.name, parents, body.names, given, annotated, tree.name_span)
        cell.names["__class__"] = made
        store(scope, decorated(scope, made))
        return None

    return run


def make_class(
    name: str,
    bases: list[UserClass],
    names: dict[str, Any],
    options: dict[str, Any],
    annotated: dict[str, str],
    span: Any = None,
) -> Any:
    """A class of a program, told to what is in it and to its bases."""
    meta = options.pop("metaclass", None)
    if meta is not None and meta is not OBJECT:
        if not (isinstance(meta, UserClass) and meta.fixed and "__abstract__" in meta.names):
            raise fault("E203 cannot-metaclass", kind_of(meta), span=span)
        names.setdefault("__abstract__", True)
    once = [b for i, b in enumerate(bases) if not (b.fixed and b in bases[:i])]
    for hook in {"__class_getitem__", "__init_subclass__"} & names.keys():
        if isinstance(names[hook], UserFunction):
            names[hook] = classmethod(names[hook])
    cls = UserClass(name, once, names, span)
    cls.annotated = dict(annotated)
    for key, value in list(names.items()):
        if isinstance(value, Instance):
            method = special(value, "__set_name__")
            if method is not None:
                call_value(method, [cls, key], {})
    own = next(
        (b.names["__init_subclass__"] for b in cls.line[1:] if "__init_subclass__" in b.names), None
    )
    if own is not None:
        call_value(bind(own, None, cls), [], options)
    else:
        no_options(name, options, span)
    return cls if cls.finish is None else cls.finish(cls)


def as_base(value: Any, span: Any) -> UserClass:
    """The class that stands for a base."""
    if isinstance(value, UserClass):
        return value
    if isinstance(value, TypeName):
        from ..values.builtin_bases import extended

        found = extended(value)
        if found is not None:
            return found
    raise fault("E203 cannot-base-class", kind_of(value), span=span)


def _check_body(tree: syntax.ClassDef) -> None:
    for statement in tree.body:
        if isinstance(statement, syntax.FunctionDef):
            name = statement.name
            if name.startswith("__") and name.endswith("__") and name not in SPECIAL:
                raise fault("E106 cannot-defined", name=name, span=statement.name_span)


# -- super -----------------------------------------------------------------------------------------


class Super:
    """`super()` inside a method: the classes after `cls` in the order of the value's class. Of one
    argument it is of no value, and its `__init__` is its own, which does nothing."""

    __slots__ = ("cls", "instance")

    def __init__(self, cls: UserClass, instance: Any):
        self.cls = cls
        self.instance = instance

    def get_attribute(self, name: str) -> Any:
        instance = self.instance
        if instance is None and name == "__init__":
            return Builtin(name, lambda: None)
        if instance is None:
            raise fault("E207 super-of-no-object", self.cls, name=name)
        of_class = isinstance(instance, UserClass)
        line = instance.line if of_class else instance.cls.line
        for cls in line[line.index(self.cls) + 1 :]:
            if name in cls.names:
                found = cls.names[name]
                if of_class:
                    return bind(found, None, instance)
                return bind(found, instance)
        if name == "__init_subclass__":
            return Builtin(name, lambda **options: no_options(instance.name, options))
        raise fault("E207 super-object-no-attribute", self.cls.name, name=name)

    def set_attribute(self, name: str, value: Any) -> None:
        raise fail("E207", "attributes of super() cannot be set", help="set them in `self`")

    def describe(self) -> str:
        of = "NULL" if self.instance is None else f"<{self.cls.name} object>"
        return f"<super: <class '{self.cls.name}'>, {of}>"


def no_options(name: str, options: dict[str, Any], span: Any = None) -> None:
    """`object.__init_subclass__` for a class that has these keywords."""
    if options:
        raise fault("E205 init_subclass-takes-no-keyword", name=name, span=span)


def make_super(scope: Scope, args: list[Any]) -> Super:
    """The value of `super()` or `super(Class, self)` in a running method."""
    cls: Any = args[0] if args else None
    if args and not isinstance(cls, UserClass):
        raise misfit("super() takes a class first, not", cls, "write `super()`")
    if len(args) == 1:
        return Super(cls, None)
    instance: Any = args[1] if args else None
    at: Scope | None = scope
    while at is not None and (cls is None or instance is None):
        if instance is None and at.function and at.names:
            instance = next(iter(at.names.values()))
        if cls is None:
            cls = at.names.get("__class__")
        at = at.outer
    fits = isinstance(cls, UserClass) and (
        isinstance(instance, cls) or (isinstance(instance, UserClass) and cls in instance.line)
    )
    if not fits and args:
        raise fault("E208 super-needs-instance", kind_of(instance), cls=cls)
    if not fits:
        raise fault("E208 super-works-inside-methods")
    return Super(cls, instance)

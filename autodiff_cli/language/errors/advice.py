"""Advice about a call in the program's own words: what to type in place of it, and which argument
an E205 is about: the caret stands there and not under the whole call.

Invariants: only texts of the program that fit on a line are used; an error that nothing better is
known about keeps the general advice of the operation. The line of an error stays that of the call,
where Python reports it too.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Mapping, Sequence
from math import isqrt, prod
from typing import Any

import numpy as np

from ...autograd.tensor import Tensor
from ...errors import AutodiffError, Label
from ...graph.dtypes import DTYPES
from ...graph.node import Shape
from ...graph.op import NUMPY_KEYWORDS, value_of
from ...graph.params import BindError, Missing
from ...graph.registry import overloads
from ...graph.sizes import shape_text
from ...graph.state import STATE
from ...source import Span
from ...suggest import suggest
from ..syntax import tree as syntax
from .operand_labels import gives_nothing, raised, remade

LONGEST = 50
_FITS = BindError("")
_CONVERTED = re.compile(r"`(\w*)(\.(?:to|long|float)\([\w.]*\))`")
_PROBABILITIES = "E307 cross_entropy-targets-shape-scores"
# What an optimizer is not made of.
_NO_PARAMETERS = ("E205 optimizer-takes-list-parameters", "E208 optimizer-takes-tensors")


def advise(
    error: AutodiffError, tree: syntax.Call, args: list[Any], owner: syntax.Node | None, first: Any
) -> AutodiffError:
    """Put the program's own names into the advice of a call's error; `owner` is the expression of
    the tensor `first` whose method was called."""
    help = _own_words(error, tree, args, owner, first)
    if help:
        error.amend(helps=(help,))
    if error.code == "E302":
        _parts(error, tree, args)
    if error.code == "E304":
        _mark_dim(error, tree)
    return error


def _own_words(
    error: AutodiffError, tree: syntax.Call, args: list[Any], owner: syntax.Node | None, first: Any
) -> str:
    text = tree.span.text
    if "\n" in text or len(text) > 2 * LONGEST:
        return ""
    name = "" if owner is None else syntax.operand(owner)
    code, which, facts = error.code, error.which, error.facts
    misfit = facts.get("error", _FITS)
    missed = misfit.argument if isinstance(misfit, Missing) else ""
    if isinstance(tree.func, syntax.Attribute) and missed == "self":
        of = tree.func.value.span.text
        return f"`{of}` is a class: write `{of}().{text[len(of) + 1 :]}` for `{text}`"
    if missed == "name" and text.startswith("getattr("):
        return f'write `{text[:-1]}, "shape")` for `{text}`: the name is a text'
    if missed == "dim0":
        return f"write `{text[:-1]}-2, -1)` for `{text}`"
    if missed == "dim":
        return f"write `{text[:-1]}{'' if text.endswith('()') else ', '}dim=-1)`"
    if which == "E307 needs-floating-point-numbers":
        return _as_float(tree, name, text)
    named = [
        (syntax.operand(part), value)
        for part, value in zip(tree.args, args, strict=False)
        if isinstance(value, Tensor)
    ]
    if code in ("E306", "E307") and (fits := _converted(error, [*named, (name, first)])):
        return fits
    if code in ("E307", "E308") and (fits := _fitting(error, named)):
        return fits
    if code == "E301":
        if tree.func.span.text.endswith("linear"):
            return ""
        if which == "E301 linear-cannot-apply-weight":
            return _linear(facts["weight"].shape, facts["input"].shape, tree, args)
        return _product(tree, args, owner, first)
    if which == "E305 class-out-range" and facts["wrong"][0] == facts["classes"]:
        return _counted_from_one(facts["classes"], tree, args)
    if which == "E308 shape-parameter-expected-shape" and len(facts["shape"]) == 1:
        return remade(tree, facts["parameter"].shape[-1], facts["shape"][0])
    if which == "E308 last-dims" and len(facts["shape"]) == 1 and facts["input"].shape:
        return remade(tree, facts["shape"][0], facts["input"].shape[-1])
    if which == "E308 input-cannot-use-weight" and facts["groups"] == 1:
        return _channels(facts["wanted"], facts["channels"], tree, args[:1])
    if which == "E308 batch_norm-training-needs-more" and owner is None:
        layer = tree.func.span.text
        first = "" if layer.endswith(")") else "first "
        spread = f"a batch of one has no spread: give it more rows, or {first}`{layer}.eval()`"
        return "" if layer.endswith("batch_norm") else spread
    if which == "E208 differentiates-tensors-not" and tree.args and type(args[0]) is list:
        return f"write `torch.tensor({tree.args[0].span.text})` for `{tree.args[0].span.text}`"
    if which.startswith("E302 index-shape") and facts["name"] == "gather":
        return _more_dims(tree, args, owner, first)
    if which == "E208 cannot-iterate":
        for part, value in zip(tree.args, args, strict=False):
            if value is None and isinstance(part, syntax.Call):
                return gives_nothing(part)
            if isinstance(part, syntax.Attribute) and not isinstance(value, Tensor):
                return f"call it: write `{part.span.text}()` for `{part.span.text}`"
    if which.startswith("E306 only-floating-point-tensors"):
        return _floating(tree, args, name, text)
    if str(facts.get("0")).startswith("the namespace "):
        path, dot, last = tree.func.span.text.rpartition(".")
        return meant_in(f"{path}{dot}", last, error.diagnostic.helps[0][8:].split(", "))
    if code == "E304" and text.startswith(f"{name}.permute("):
        dims = ", ".join(map(str, range(len(first.shape))))
        return f"give each dim once: write `{name}.permute({dims})` for `{text}`"
    if code == "E406" and text.endswith(".backward()"):
        kept = f"{text[:-1]}retain_graph=True)"
        before = [label.span for label in error.diagnostic.labels if label.span is not None]
        if before and (again := _carried(before[0])) and _indented(before[0]):
            return again
        if any(_indented(tree.span) > _indented(span) for span in before):
            return f"compute the loss again in the loop: move line {before[0].line} into it"
        return f"write `{kept}` for `{text}` the first time, or compute the loss again"
    if code == "E203" and text.endswith(".cuda()"):
        return f"there is only the CPU: write `{name}` for `{text}`"
    starred = any(isinstance(part, syntax.Starred) for part in tree.args)
    if missed and which and not starred:
        comma = "" if text.endswith("()") else ", "
        numbers = args and all(type(given) in (int, float) for given in args)
        free = numbers and missed not in tree.span.source.text
        value = "-1" if free and missed[:3] == "dim" else "10" if free else missed
        more = f"{missed}={value}" if tree.keywords or value != missed else missed
        return f"{missed} is missing: write `{text[:-1]}{comma}{more})`"
    if which in ("E205 argument-must-tensor", "E205 argument-tensor"):
        for part, value in zip(tree.args, args, strict=False):
            if type(value) is list and value and all(isinstance(v, Tensor) for v in value):
                return f"write `torch.stack({part.span.text})` for `{part.span.text}`"
            if type(value) is tuple and value and isinstance(value[0], Tensor):
                given = part.span.text
                return f"it is several results: write `{syntax.operand(part)}[0]` for `{given}`"
            parts = value if type(value) is list else ()
            plain = type(value).__name__ == facts.get("given") in ("int", "float", "list")
            clamped = facts["name"] in ("maximum", "minimum") and not parts
            if plain and not clamped and not any(isinstance(v, Tensor) for v in parts):
                return f"write `torch.tensor({part.span.text})` for `{part.span.text}`"
    if code == "E205" and owner is not None and isinstance(tree.func, syntax.Attribute):
        method = f"{name}.{tree.func.attr}"
        for signature in facts.get("signatures", ()):
            first, comma, rest = signature.partition("(")[2].partition(", ")
            renamed(error, signature, f"{method}({rest if comma else ')'}")
        return error.diagnostic.helps[0]
    if which == "E208 state-dict-tensors" and tree.args:
        made = rf"^[ \t]*{re.escape(tree.args[0].span.text)} = (\S+)$"
        for found in re.findall(made, tree.span.source.text[: tree.span.start], re.M)[-1:]:
            return f"call it: write `{found}()` for `{found}`"
    number = str(facts.get("0")).startswith(("a tensor ", "an int", "a float"))
    if which.startswith("E208 not-function") and isinstance(tree.func, syntax.Name):
        name = tree.func.id
        shadow = re.search(rf"^[ \t]*{name} *=(?!=)", tree.span.source.text, re.M)
        if shadow and (overloads(name) or hasattr(builtins, name)):
            line = tree.span.source.position(shadow.start())[0]
            return f"`{name}` is a value since line {line}: give that another name"
    if which == "E208 not-function-cannot-called" and number and tree.args:
        factor = text[tree.func.span.end - tree.span.start :]
        if power := raised(tree.span):
            return power
        return f"for a product write `{syntax.operand(tree.func)} * {factor}` for `{text}`"
    if code == "E503":
        return _regular(
            "cholesky" in str(facts.get("name")),
            tree,
            owner,
            [*([] if owner is None else [first]), *args],
        )
    called = isinstance(tree.func, syntax.Attribute) and text.endswith("()")
    if called and which.startswith("E208 not-function-cannot-called"):
        return f"it is a value, not a method: write `{text[:-2]}`"
    if owner is None:
        made = tree.func.span.text
        if which == "E205 optimizer-got-empty-parameter" and tree.args:
            name, _, rest = tree.args[0].span.text.rpartition(".")
            return "" if rest != "parameters()" else (
                f"`{name}` has none: layers of a list are found in `self.layers = "
                f"nn.ModuleList([...])`, tensors as `nn.Parameter(...)`"
            )  # fmt: skip
        if which == "E208 holds-modules":
            return _module(tree, args, facts)
        if which in _NO_PARAMETERS and tree.args:
            given_text = tree.args[0].span.text
            right = f"{given_text}.parameters()"
            right = f"[{given_text}]" if isinstance(args[0], Tensor) else right
            return f"write `{right}` for `{given_text}`"
        if made.endswith("Tensor") and misfit.unknown:
            return f"write `{made.removesuffix('Tensor')}tensor{text[len(made) :]}` for `{text}`"
        is_class = made.rpartition(".")[2][:1].isupper() and not made.endswith(")")
        signature = facts.get("signature", "")
        if is_class and signature.startswith("_"):  # rows of the library share constructors
            called_as(error, made)
        told = any(help.startswith(("write `", "make ")) for help in error.diagnostic.helps)
        tensors = is_class and args and type(args[0]) is Tensor
        if code in ("E205", "E408") and tensors and not told:
            options = ", ".join(k.span.text for k in tree.keywords)
            operands = ", ".join(a.span.text for a in tree.args)
            return f"make it first, then call it: `{made}({options})({operands})`"
        if signature:
            renamed(error, signature, f"{made}({signature.partition('(')[2]}")
        if code == "E401" and tree.args and isinstance(args[0], Tensor):
            whole, given = tree.args[0].span.text, syntax.operand(tree.args[0])
            return (
                f"reduce it: write `{given}.sum()` for `{whole}`; or give a gradient of that shape"
            )
        if code == "E303" and made.rpartition(".")[2] == "reshape" and len(tree.args) > 1:
            return _reshaped(error, f"{made}({tree.args[0].span.text}, ")
        if which == "E408 tensor-elements" and len(args) == 1:
            return f"reduce it first: `{made}({syntax.operand(tree.args[0])}.sum())`"
        return ""
    if code == "E408" and text.endswith(".item()"):
        return f"reduce it first: `{name}.sum().item()`, or use `{name}.tolist()`"
    if code == "E402" and text.endswith(".numpy()"):
        return f"write `{name}.detach().numpy()`"
    if code == "E401" and text.endswith(".backward()"):
        path = "torch." if "torch" in tree.span.source.text else ""
        return (
            f"reduce it: `{name}.sum().backward()`; or give a gradient: "
            f"`{name}.backward({path}ones_like({owner.span.text}))`"
        )
    if which == "E303 view-size-not-compatible":
        rest = text[len(owner.span.text) :]
        return f"write `{name}.reshape{rest.removeprefix('.view')}` for `{text}`"
    if code == "E303" and isinstance(tree.func, syntax.Attribute):
        return _reshaped(error, f"{name}.{tree.func.attr}(")
    return ""


def _carried(span: Span) -> str:
    """For a value that each step of a loop makes of the one before."""
    name, made = span.assigned, span.text
    fresh = re.sub(rf"\b{name}\b", f"{name}.detach()", made)
    if not name or fresh == made:
        return ""
    return f"each step may start anew: write `{name} = {fresh}` for `{name} = {made}`"


def _module(tree: syntax.Call, args: list[Any], facts: Mapping[str, Any]) -> str:
    """The module for a list of modules, a class, or a function that is given as one."""
    path, made = tree.func.span.text.rpartition(".")[0], facts["made"]
    for part, value in zip(tree.args, args, strict=False):
        given = part.span.text
        if type(value) is list and facts["0"] == "a list":
            return f"write `*{given}` for `{given}`"
        if isinstance(value, type):
            return f"write `{given}()` for `{given}`"
        if made.lower() == f"{getattr(value, 'name', '').replace('_', '')}()":
            return f"write `{path}{'.' if path else ''}{made}` for `{given}`"
    return ""


def _indented(span: Span) -> int:
    line = span.source.line(span.line)
    return len(line) - len(line.lstrip())


def meant_in(path: str, word: str, names: list[str]) -> str:
    """The name that was meant of a module, else some of what it has."""
    close = suggest(word, names, 1)
    some = f"it has: {', '.join(names[:12])}"
    return f"write `{path}{close[0]}` for `{path}{word}`" if close else some


def _floating(tree: syntax.Call, args: list[Any], name: str, text: str) -> str:
    """Whole numbers that require grad, as floats."""
    if text.endswith(".requires_grad_()"):
        return f"write `{name}.float().requires_grad_()`"
    if "requires_grad" in text and "dtype" not in text:
        path = "torch." if text.startswith("torch.") else ""
        return f"write `{text[:-1]}, dtype={path}float32)`"
    if tree.args and args and isinstance(args[0], Tensor):
        first = syntax.operand(tree.args[0])
        return f"write `{first}.float()` for `{first}`"
    return ""


def _converted(error: AutodiffError, tensors: list[tuple[str, Any]]) -> str:
    """The operand that the help would convert, as the program writes it: first the function of the
    library that was called, then who called that."""
    said = _CONVERTED.search("".join(error.diagnostic.helps))
    if said is None:
        return ""
    wrong = error.facts.get("converted", error.facts.get(said[1] or "x"))
    error.facts = {**error.facts, "converted": wrong}
    for name, value in tensors:
        if isinstance(value, Tensor) and value.node is wrong:
            return f"write `{name}{said[2]}` for `{name}`"
    return ""


def _fitting(error: AutodiffError, given: list[tuple[str, Tensor]]) -> str:
    """The operand of a loss in the dtype or shape that it needs."""
    which, facts = error.which, error.facts
    for name, value in given:
        shape = value.shape
        if which == "E308 hidden-size":
            wanted, found = facts["wanted"], facts["found"]
            if shape == found and prod(shape) == prod(wanted):
                return f"write `{name}.view({', '.join(map(str, wanted))})` for `{name}`"
            if len(shape) == 3 and shape[:2] == (found[1], wanted[1]):
                turned = f"the batch stands second: write `{name}.transpose(0, 1)` for `{name}`"
                return f"{turned}, or make the layer with `batch_first=True`"
        more = f"{len(shape) + 1}D"
        if which == "E308 input-dims" and len(shape) > 1 and more in facts["dims"].split(" or "):
            return f"write `{name}.unsqueeze(0)` for `{name}`: a batch of one"
    if which == "E308 needs-input-dims-weight":
        return _images(error, given)
    if which == _PROBABILITIES and given and given[0][1].node.op.name == "argmax":
        span = given[0][1].node.span
        scores = re.sub(r"\.argmax\([^()]*\)$", "", span.text if span else "")
        return f"class numbers have no slope: give the scores, `{scores}` for `{given[0][0]}`"
    if which == "E308 matmul-needs-tensors-least" and len(given) == 2:
        return f"write `{given[0][0]} * {given[1][0]}` to multiply by a number"
    if which == _PROBABILITIES:
        for name, value in given:
            if value.dtype.kind != "f":
                return f"write `{name}.float()` for `{name}`"
    want: Shape = error.facts["want"] if which.startswith("E308 class-targets") else ()
    if len(given) > 1:
        (first, x), (second, y) = given[:2]
        if want == (y.node.numel,) == y.node.shape[:1]:
            return f"write `{second}.flatten()` for `{second}`"
        if which == "E308 needs-one-shape" and x.node.numel == y.node.numel:
            return f"write `{second}.view_as({first})` for `{second}`"
    return ""


def _images(error: AutodiffError, given: list[tuple[str, Tensor]]) -> str:
    """Images without channels, or in rows of pixels, for a convolution."""
    weight, dims = error.facts["weight"].shape, error.facts["number"]
    if len(weight) != dims:
        return ""
    channels = weight[error.facts["form"].startswith("out")]
    for name, value in given:
        shape = value.shape
        if shape != error.facts["input"].shape or not (shape and channels):
            continue
        side = isqrt(shape[-1] // channels)
        pixels = channels * side * side == shape[-1] > 1
        if len(shape) == 2 and dims == 4 and pixels and shape[0] != shape[1]:
            return f"write `{name}.view(-1, {channels}, {side}, {side})` for `{name}`"
        if len(shape) == dims - 2:
            sizes = ", ".join(map(str, shape))
            return f"write `{name}.expand(1, {channels}, {sizes})` for `{name}`: a batch of one"
    return ""


def _counted_from_one(classes: int, tree: syntax.Call, args: list[Any]) -> str:
    """Class numbers from 1 to the number of classes."""
    for part, value in zip(tree.args, args, strict=False):
        if isinstance(value, Tensor) and value.dtype.kind == "i" and value.node.numel:
            found = value_of(value.node)
            if found.min() == 1 and found.max() == classes:
                return (
                    f"classes are numbered from 0: write `{syntax.operand(part)} - 1` for "
                    f"`{part.span.text}`"
                )
    return ""


def _channels(wanted: int, channels: int, tree: syntax.Call, args: list[Any]) -> str:
    """A layer for these channels; or, where they stand last, the input with them in front."""
    for part, value in zip(tree.args, args, strict=False):
        if isinstance(value, Tensor) and value.shape[-1] == wanted:
            n = len(value.shape)
            dims = ", ".join(map(str, (0, n - 1, *range(1, n - 1))))
            name = syntax.operand(part)
            return f"channels stand in front: write `{name}.permute({dims})` for `{name}`"
    return remade(tree, wanted, channels) or (
        f"for this input make the layer with {channels} input channel"
        f"{'' if channels == 1 else 's'}, or give it an input of {wanted}"
    )


def _more_dims(tree: syntax.Call, args: list[Any], owner: syntax.Node | None, first: Any) -> str:
    """The index of `gather` with the dim along which it gathers."""
    tensors = [first, *args] if owner is not None else args
    dim = next((value for value in args if type(value) is int), None)
    index = next(((p, v) for p, v in zip(tree.args, args, strict=False)
                  if isinstance(v, Tensor) and v is not tensors[0]), None)  # fmt: skip
    if dim is None or index is None or len(index[1].shape) + 1 != len(tensors[0].shape):
        return ""
    name = syntax.operand(index[0])
    return f"write `{name}.unsqueeze({dim})` for `{name}`"


def _regular(positive: bool, tree: syntax.Call, owner: syntax.Node | None, given: list[Any]) -> str:
    """The matrix with as much of the identity in it as makes it regular, or positive."""
    parts = [*([] if owner is None else [owner]), *tree.args]
    for part, value in zip(parts, given, strict=False):
        if isinstance(value, Tensor) and value.node.ndim > 1 and len({*value.shape[-2:]}) == 1:
            path = "torch." if STATE.python else ""
            found = value_of(value.node) if positive else np.eye(1)
            low = float(np.linalg.eigvalsh(np.nan_to_num(found)).min())
            little = f"{max(1e-6, -1.1 * low):.2g}"
            added = f"{syntax.operand(part)} + {little} * {path}eye({value.shape[-1]})"
            without = "`linalg.pinv` and `linalg.lstsq` do without an inverse"
            return f"write `{added}` for `{part.span.text}`; {without}"
    return ""


def _as_float(tree: syntax.Call, name: str, text: str) -> str:
    if name and isinstance(tree.func, syntax.Attribute):
        rest = text[tree.func.span.end - len(tree.func.attr) - tree.span.start :]
        return f"write `{name}.float().{rest}`"
    if tree.args and isinstance(tree.args[0], syntax.Name):
        first = tree.args[0].span
        at = first.end - tree.span.start
        return f"write `{text[:at]}.float(){text[at:]}`"
    return ""


def _linear(
    weight: tuple[int, ...], given: tuple[int, ...], tree: syntax.Call, args: list[Any]
) -> str:
    """For a layer whose input has other features; nothing for a weight that is no matrix."""
    if len(weight) != 2:
        return ""
    if prod(given) == weight[1] and tree.args and isinstance(args[0], Tensor):  # of one example
        part = tree.args[0]
        if tuple(args[0].shape) == given:
            return f"write `{syntax.operand(part)}.reshape(1, -1)` for `{part.span.text}`"
        return f"write `{syntax.operand(part)}.unsqueeze(0)` for `{part.span.text}`: a batch of one"
    if given[1:] and prod(given[1:]) == weight[1]:
        part = tree.args[0]
        flat = f"write `{syntax.operand(part)}.flatten(1)` for `{part.span.text}`"
        shape = f"({given[0]}, {weight[1]})"
        return f"flatten it to {shape}: `nn.Flatten()` before that layer, or {flat}"
    layer = f"for this input the layer is `nn.Linear({given[-1]}, {weight[0]})`"
    return remade(tree, weight[1], given[-1]) or layer


def _product(tree: syntax.Call, args: list[Any], owner: syntax.Node | None, first: Any) -> str:
    """For `torch.matmul(x, y)` and `x.mm(y)`: the transposition that fits, or the size needed."""
    parts = [*([] if owner is None else [owner]), *tree.args][:2]
    values = [*([] if owner is None else [first]), *args][:2]
    if len(parts) < 2 or not all(isinstance(v, Tensor) and len(v.shape) == 2 for v in values):
        return ""
    if not all(isinstance(p, syntax.Name) for p in parts):
        return ""
    a, b = (p.span.text for p in parts)
    x, y = (tuple(v.shape) for v in values)
    function = tree.func.span.text
    for left, s, right, t in ((f"{a}.T", x[::-1], b, y), (a, x, f"{b}.T", y[::-1])):
        if s[1] == t[0]:
            call = f"{function}({left}, {right})"
            if owner is not None:
                call = f"{left}{function[len(a) :]}({right})"
            shapes = f"{shape_text(s)} @ {shape_text(t)} -> {shape_text((s[0], t[1]))}"
            return f"`{call}` has shapes {shapes}"
    return f"`{a}` has {x[1]} columns, so `{b}` needs {x[1]} rows, not {y[0]}"


def _reshaped(error: AutodiffError, call: str) -> str:
    """Shapes that fit; `call` is what stands before them."""
    if error.which != "E303 cannot-reshape-element-into":
        return ""
    n, wanted = error.facts["total"], error.facts["size"]
    fitting = [d for d in range(1, min(n, 10_000) + 1) if n % d == 0]
    if not fitting or not wanted:
        return ""
    last = min(fitting, key=lambda d: abs(d - abs(wanted[-1])))
    return f"{n} elements fit `{call}-1, {last})`, shape ({n // last}, {last}), or `{call}-1)`"


def _parts(error: AutodiffError, tree: syntax.Call, args: list[Any]) -> None:
    """Label the tensors of a list, as `cat` and `stack` take it."""
    if not tree.args or not isinstance(tree.args[0], syntax.List):
        return
    parts = tree.args[0].elements
    if len(args[0]) != len(parts):
        return
    labels = [
        Label(part.span, _named(part) + shape_text(tuple(value.shape)))
        for part, value in zip(parts, args[0], strict=True)
        if isinstance(value, Tensor)
    ]
    error.amend(labels=(*error.diagnostic.labels, *labels[:4]))
    shapes = [tuple(v.shape) for v in args[0] if isinstance(v, Tensor)]
    joined = tree.func.span.text[-3:] == "cat" and "dim" in error.facts
    for part, shape in zip(parts, shapes, strict=False) if joined else ():
        at, most = error.facts["dim"], max(shapes, key=len)
        if shape == (*most[:at], *most[at + 1 :]):
            one = f"write `{syntax.operand(part)}.unsqueeze({at})` for `{part.span.text}`"
            error.amend(helps=(one,))
    if error.which == "E302 cat-along-dim" and len({len(s) for s in shapes}) == 1:
        given = error.facts["dim"]
        for dim in range(len(shapes[0])):
            rest = {s[:dim] + s[dim + 1 :] for s in shapes}
            if dim != given and len(rest) == 1:
                call = f"{tree.func.span.text}({tree.args[0].span.text}, dim={dim})"
                if "\n" not in call and len(call) <= 2 * LONGEST:
                    error.amend(helps=(f"they fit along dim {dim}: `{call}`",))


def _named(part: syntax.Node) -> str:
    return f"{part.id}: " if isinstance(part, syntax.Name) else ""


def _mark_dim(error: AutodiffError, tree: syntax.Call) -> None:
    """Put the caret under the dim that is out of range."""
    if "dim" not in error.facts:
        return
    dim = str(error.facts["dim"])
    places = [k.value for k in tree.keywords if k.name in ("dim", "axis", "dim0", "dim1", "dims")]
    for part in [*places, *tree.args]:
        inner = part.elements if isinstance(part, syntax.Tuple | syntax.List) else [part]
        for one in inner:
            if one.span.text == dim and one.span.line == tree.span.line:
                help = error.diagnostic.helps[0]
                if "axis" in (k.name for k in tree.keywords):
                    help = help.replace("`dim=", "`axis=")
                error.amend(span=one.span, helps=(help,))
                return


# -- which argument is meant -----------------------------------------------------------------------


def marked(error: AutodiffError, tree: syntax.Call, before: int) -> AutodiffError:
    """Put the caret under the argument meant; `before` is the number of arguments that stand
    before the parentheses (the tensor of a method)."""
    misfit = error.facts.get("error", _FITS)
    name, extra = misfit.argument or error.facts.get("argument", ""), misfit.extra
    if misfit.unknown:
        _suggest(error, name, misfit.names)
        return _at(error, tree, _keyword(tree, name, True), "no such argument")
    if 0 < extra <= len(tree.args):
        span = tree.args[-extra].span.to(tree.args[-1].span)
        return _at(error, tree, span, "one too many" if extra == 1 else f"{extra} too many")
    if name and not isinstance(misfit, Missing):
        if misfit.names[:1] == ["tensors"]:
            _in_a_list(error, tree)
        if misfit.wants.startswith("a dtype") and misfit.text in DTYPES:
            error.amend(helps=(f"write `torch.{misfit.text}`",))
        place = _keyword(tree, name, False) or _positional(error, tree, before)
        if place is not None and misfit.wants == "a tuple of ints" and misfit.given == "int":
            error.amend(helps=(f"write `({place.text},)` for `{place.text}`",))
        return _at(error, tree, place, "")
    return error


def called_as(error: AutodiffError, name: str, first: str = "") -> None:
    """Tell the failure of a call that does not fit of a function of this name, in whose calls the
    parameter `first` is not written."""
    signature = error.facts.get("signature")
    if signature:
        params = signature.partition("(")[2].removeprefix(first).removeprefix(", ")
        renamed(error, signature, f"{name}({params}")
        error.amend(message=f"`{name}` {error.facts['error'].message}")
        error.facts = {**error.facts, "signature": f"{name}({params}"}


def renamed(error: AutodiffError, old: str, new: str) -> None:
    """Put one signature in place of another in the advice."""
    helps = [text.replace(f"`{old}`", f"`{new}`") for text in error.diagnostic.helps]
    error.amend(helps=tuple(helps))


def _at(error: AutodiffError, tree: syntax.Call, span: Span | None, text: str) -> AutodiffError:
    if span is None:
        return error
    if span.line != tree.span.line:
        return error.amend(labels=(*error.diagnostic.labels, Label(span, text or "this argument")))
    labels = tuple(label for label in error.diagnostic.labels if label.span != span)
    return error.amend(span=span, label=text, labels=labels)


def _keyword(tree: syntax.Call, name: str, whole: bool) -> Span | None:
    for keyword in tree.keywords:
        if keyword.name is not None and name in (keyword.name, NUMPY_KEYWORDS.get(keyword.name)):
            return keyword.span if whole else keyword.value.span
    return None


def _positional(error: AutodiffError, tree: syntax.Call, before: int) -> Span | None:
    at = error.position - before
    if 0 <= at < len(tree.args) and not any(isinstance(a, syntax.Starred) for a in tree.args):
        return tree.args[at].span
    return None


def _in_a_list(error: AutodiffError, tree: syntax.Call) -> None:
    """`torch.cat(x, y)` was meant to be `torch.cat([x, y])`."""
    tensors = syntax.Name | syntax.Attribute | syntax.Call | syntax.BinOp | syntax.Subscript
    names = [
        a.span.text for a in tree.args if isinstance(a, tensors | syntax.List | syntax.NumList)
    ]
    if len(names) > 1:
        rest = "".join(f", {a.span.text}" for a in [*tree.args[len(names) :], *tree.keywords])
        call = f"`{tree.func.span.text}([{', '.join(names)}]{rest})`"
        error.amend(helps=(f"write {call}",))


def _suggest(error: AutodiffError, name: str, names: Sequence[str]) -> None:
    initials = "".join(part[:1] for part in name.split("_"))
    close = suggest(name, names) or [n for n in names if n == initials]
    if close:
        error.amend(helps=(f"did you mean `{close[0]}=`?", *error.diagnostic.helps))

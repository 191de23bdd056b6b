"""How atoms are written: functions, conditions, powers, places."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...graph.node import Node
from ..algebra import Algebra
from ..atoms.places import matrix
from ..atoms.pools import result_of
from ..terms import JOINS, OPERAND, At, Atom, Factor, NoFormula, Sum, is_summed, number_of
from .expression import INFIX, Call, Expression, Index, Infix, Name, Number, axes_of, expression_of
from .forms import Form, call, constant, dims, infix, placed
from .lets import cost_of, mapped


class AtomPrinter:
    """Writes the atoms of one algebra. `named`: sums that have a name."""

    def __init__(self, algebra: Algebra, named: Mapping[Sum, str]):
        self.algebra = algebra
        self.named = named
        self.named_atoms = {
            product[0].atom: name
            for sum_, name in named.items()
            for product, value in sum_.terms
            if len(product) == 1 and value == 1 and algebra.of_atom(product[0].atom) == sum_
        }

    def form(self, sum_: Sum) -> Form:
        """The cheapest form of a sum, with its shape."""
        raise NotImplementedError

    def whole(self, sum_: Sum) -> Form:
        """The cheapest form of a sum, with all its axes."""
        form = self.form(sum_)
        count = axes_of(form.shown) or 0
        ahead = sum_.shape[: len(sum_.shape) - count]
        if set(ahead) != {1}:
            return form
        return Form(Index(form.shown, ", ".join(["None"] * len(ahead))), form.marks)

    def powered(self, factor: Factor) -> tuple[Form, bool]:
        """A factor without its labels, and whether it is divided by."""
        power = abs(factor.power)
        below = factor.divides
        root = self._norm(factor) if power in (0.5, 1, 1.5) else None
        if root is not None:
            doubled = power * 2
            if doubled == 2 and not below:
                pass
            elif doubled == 1:
                return root, below
            elif cost_of(root.shown) <= cost_of(self.atom(factor.atom).shown):
                exponent = Form(Number(int(doubled)))
                return infix("pow", root, exponent), below
        form = self.atom(factor.atom)
        if any(isinstance(label, At) for label in factor.at):
            form = placed(form, factor.at)
        if power == 0.5:
            form = call("sqrt", form)
        elif power != 1:
            exponent = constant(power)
            form = infix("pow", form, exponent)
        return form, below

    def _norm(self, factor: Factor) -> Form | None:
        """`norm(r)` for the root of a sum of squares."""
        atom = self.algebra.atoms[factor.atom]
        if atom.kind != "group" or atom.shape or len(atom.parts[0].terms) != 1:
            return None
        product, value = atom.parts[0].terms[0]
        if value != 1 or len(product) != 1 or product[0].power != 2:
            return None
        (inner,) = product
        if len(set(inner.at)) < len(inner.at) or not all(is_summed(x) for x in inner.at):
            return None
        return call("norm", self.atom(inner.atom))

    def _sides(self, parts: tuple[Sum, ...]) -> list[Form]:
        """Operands that are broadcast to the shape of the result."""
        small = list(map(self.algebra.unstretched, parts))
        full = np.broadcast_shapes(*(part.shape for part in small)) == parts[0].shape
        return [self.side(part) for part in (small if full else parts)]

    def side(self, sum_: Sum) -> Form:
        """An operand that is broadcast: a number as it is."""
        value = number_of(sum_)
        return self.form(sum_) if value is None else constant(value)

    def atom(self, number: int) -> Form:
        atom = self.algebra.atoms[number]
        if number in self.named_atoms:
            return Form(Name(self.named_atoms[number], atom.shape))
        if atom.kind == "name":
            return Form(Name(atom.data, atom.shape))
        if atom.kind == "array":
            return Form(atom.data)
        if atom.kind == "call":
            return self._call(atom)
        if atom.kind in ("move", "triangle"):
            return matrix(number, self)
        if atom.kind == "delta":
            return Form(Call("eye", (Number(atom.shape[0]),)))
        if atom.kind == "gate":
            condition = self._condition(atom)
            ends = (condition.shown, Number(1.0), Number(0.0))
            return Form(Call("where", ends), condition.marks)
        if atom.kind in ("window", "mask", "split", "pool"):  # of nothing
            raise NoFormula
        if atom.kind == "maxima":
            source = self.whole(atom.parts[0])
            return Form(result_of(atom.data, source.shown, 0), source.marks)
        if atom.kind == "masked":
            return call("masked_fill", *self._sides(atom.parts))
        if atom.kind == "function" and len(atom.parts) > 1:
            return self._function(atom)
        form = self.side(atom.parts[0]) if atom.kind == "function" else self.form(atom.parts[0])
        if atom.kind == "one_hot":
            return call("one_hot", form, Number(atom.data))
        if atom.kind == "order":
            name, ends, marks = atom.data
            places = Call(name, (form.shown, *map(Number, ends)), marks)
            if not ends:
                return Form(places, form.marks)
            return Form(Index(places, 1), form.marks)  # beside the values
        if atom.kind in ("group", "detached"):
            return form
        if atom.kind in ("logsumexp", "amax", "amin", "prod"):
            if atom.data is None:
                return call(atom.kind.removeprefix("a"), form)
            return call(atom.kind, form, dims(atom.axis))
        if atom.kind == "kthvalue" or (atom.kind == "median" and atom.data is not None):
            also = atom.data[1:] if atom.kind == "kthvalue" else ()
            last = atom.kind == "kthvalue" and atom.axis == len(atom.parts[0].shape) - 1
            made = call(atom.kind, form, *map(Number, also if last else (*also, atom.axis)))
            return Form(Index(made.shown, 0), made.marks)
        if atom.kind == "median":
            return call("median", form)
        if atom.kind in ("softmax", "cumprod", "logcumsumexp"):
            return call(atom.kind, form, Number(atom.data))
        if atom.kind == "function":
            return self._function(atom)
        return call({"inverse": "inv"}.get(atom.kind, atom.kind), form)

    def _call(self, atom: Atom) -> Form:
        """A call as programs write it, of these parts."""
        node: Node = atom.data
        inputs = (node.args[0] if node.op.key == "output" else node).inputs
        names = {part: f"{i} " for i, part in enumerate(inputs)}
        forms = {
            names[part]: self.whole(sum_) for part, sum_ in zip(inputs, atom.parts, strict=True)
        }
        found: Expression = mapped(
            expression_of(node, names, opened=True),
            lambda part: forms[part.text].shown if getattr(part, "text", "") in forms else None,
        )
        return Form(found, sum(form.marks for form in forms.values()))

    def holds(self, sum_: Sum) -> Form:
        """A gate as the condition that it is."""
        one = self.algebra.alone(sum_)
        assert one is not None
        return self._condition(one[1])

    def _condition(self, gate: Atom) -> Form:
        if gate.data in JOINS:
            one, other = (
                self._condition(self.algebra.atoms[number])
                for number in self.algebra.gates_of(gate)
            )
            return infix(JOINS[gate.data], one, other)
        if gate.data == "holds":
            return self.form(gate.parts[0])
        if gate.data == "fails":
            return call("logical_not", self.form(gate.parts[0]))
        inner, bound = gate.parts
        if gate.data in ("gt", "le") and number_of(bound) == 0:  # relu(u) > 0 where u > 0
            for number, name in self.named_atoms.items():
                atom = self.algebra.atoms[number]
                if atom.function in ("relu", "nn.functional.relu") and atom.parts[0] == inner:
                    shown = Infix(gate.data, Name(name, atom.shape), Number(0))
                    return Form(shown)
        return infix(gate.data, *self._sides(gate.parts))

    def _function(self, atom: Atom) -> Form:
        op, statics = atom.data
        forms = self._sides(atom.parts)
        if op.key in INFIX:
            return infix(op.key, *forms)
        keywords = tuple(
            (param.name, str(value))
            for param, value in zip(op.params, statics, strict=False)
            if value is not OPERAND and value != param.default
        )
        name = op.name.removeprefix("nn.functional.")
        shown = Call(name, tuple(form.shown for form in forms), keywords)
        return call(name, *forms)._replace(shown=shown)

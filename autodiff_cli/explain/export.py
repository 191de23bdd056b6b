"""Stand-alone code of a result and its gradients: in NumPy and JAX the graph of the backward pass,
or the formula of a gradient where there is one; in PyTorch the graph of the result, and of what a
program's own backward functions and hooks give.

Invariant: when it is run it asserts that it gives the program's result, and that each gradient is
what central differences of its own result say, or where the program's gradients are others (parts
that are detached, kinks) what the program gave.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import AutodiffError, fault
from ..graph.node import Node
from ..graph.op import LEAF, value_of
from ..graph.walk import SEQUENCE, bodies, walk
from ..suggest import free_name
from ..transform.jax_source import modules_of_jax
from ..transform.numpy_source import Graph, NumpySource, is_given
from ..transform.torch_source import Made
from ..transform.torch_text import TorchText, Turn
from ..transform.value_source import array_text

LIBRARIES = {"numpy": "NumPy", "jax": "JAX", "torch": "PyTorch"}
IMPORTS = {
    "numpy": "import numpy as np\n",
    "jax": "import jax\nimport jax.numpy as jnp\nimport numpy as np\n",
    "torch": "import numpy as np\nimport torch\nimport torch.nn.functional as F\n",
}
DIFFERENCES = """\
wide = {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in arguments.items()}
slopes = loss_and_gradients(**wide)[1]
for name, at in %s.items():  # beside central differences along a direction, of fourth order
    direction = np.random.default_rng(0).standard_normal(wide[at].shape)
    for step in (1e-5, 1e-7):  # the second crosses fewer kinks
        moved = [loss_and_gradients(**{**wide, at: wide[at] + s * step * direction})[0].sum()
                 for s in (1, -1, 2, -2)]
        slope = (8 * (moved[0] - moved[1]) - (moved[2] - moved[3])) / (12 * step)
        found, close = (slopes[name] * direction).sum(), 1e-6 * max(1.0, *map(abs, moved))
        if np.isclose(found, slope, %s, close):
            break
    np.testing.assert_allclose(found, slope, %s, close, err_msg=name)
"""
MOST_WRITTEN = 256  # elements of an array in the code; larger ones go to a file, where there is one
RESERVED = (
    "np",
    "jnp",
    "jax",
    "torch",
    "F",
    "scipy",
    "slice",
    "loss_and_gradients",
    "gradients",
    "data",
)

Arrays = dict[str, np.ndarray]


def quoted(text: str) -> str:
    """Text as it stands in a string of Python, whatever is in it: files have any names."""
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Exported:
    """What a program is exported from: its result, by what, and the names of values.

    `gradients` has the node of each gradient by the name in the program; `names` may name several
    nodes alike, the first one keeps its name. Of those `confirmed` central differences agree with
    the gradients.
    """

    def __init__(
        self, results: list[tuple[Node, Node]], of: str, gradients: Mapping[str, tuple[Node, Node]],
        names: Iterable[tuple[str, Node]], file: str, made: dict[Node, Made],
        confirmed: Container[Node] = (), turns: Sequence[Turn] = (),
    ):  # fmt: skip
        self.results = results
        self.of = of
        self.gradients = gradients
        self.names = list(names)
        self.file = file
        self.made = made
        self.confirmed = confirmed
        self.turns = turns

    def text(self, to: str, beside: str | None) -> tuple[str, Arrays]:
        """The code in a library, and the arrays of the file `beside` that it reads, if any."""
        roots = [node for node, _ in self.results]
        if to != "torch":
            roots += [g for _, g in self.gradients.values()]
        called, inputs = self._called(roots)
        if to == "torch":
            body, data, helpers = self._torch(called, inputs)
        else:
            body, data, helpers = self._arrays(to, roots, called, inputs)
        stored: Arrays = {}

        def array(key: str, value: Any) -> str:
            value = np.asarray(value)
            if beside is not None and value.size > MOST_WRITTEN:
                stored[key] = value
                return f'data["{key}"]'
            return array_text(value)

        give = {"numpy": "{}", "jax": "jnp.asarray({})", "torch": "torch.asarray({})"}[to]
        head = [f"{name} = {give.format(array(name, value))}" for name, value in data.items()]
        main = []
        for node in inputs:
            made = give.format(array(called[node], value_of(node)))
            main.append(f"{called[node]} = {made}" + (
                ".requires_grad_()" if to == "torch" and node.requires_grad else ""))  # fmt: skip
        compared = {
            name: called[node] for name, (node, _) in self.gradients.items()
            if to != "torch" and node in inputs and node in self.confirmed
            and not any("np.float32" in line for line in body)  # rounds what is moved a little
        }  # fmt: skip
        expected = {self.of: self.results[0][0]} | {
            f"d {self.of} / d {n}": g for n, (_, g) in self.gradients.items() if n not in compared
        }
        rtol = "1e-4" if any(g.dtype.itemsize < 8 for g in expected.values()) else "1e-8"
        slack = "1e-4" if rtol == "1e-4" else "1e-5"  # constants in single precision
        main += [
            f"arguments = dict({', '.join(f'{called[n]}={called[n]}' for n in inputs)})",
            "result, gradients = loss_and_gradients(**arguments)",
            "expected = {",
            *(f"    {n!r}: {array(f'expected {n}'.replace('/', 'by'), value_of(g))},"
              for n, g in expected.items()),
            "}",
            f"given = {{{f'd {self.of} / d '!r} + name: g for name, g in gradients.items()}}",
            f"for name, value in {{{self.of!r}: result, **given}}.items():",
            "    print(name, value, sep=\" = \")",
            "    if name in expected:",
            *(["        value = value.to_dense().numpy(force=True)"] if to == "torch" else []),
            f"        close = {rtol} * max(1.0, np.nanmax(np.abs(expected[name]), initial=0))",
            "        np.testing.assert_allclose(value, expected[name], atol=close, err_msg=name)",
            *((DIFFERENCES % (compared, slack, slack)).splitlines() if compared else ()),
        ]  # fmt: skip
        imports = IMPORTS[to] + "".join(
            f"{line}\n" for line in sorted(helpers.imports if helpers else ())
        )
        if to == "jax":
            imports += '\njax.config.update("jax_enable_x64", True)\n'
        if stored:
            main.insert(0, "")
            imports = f"from pathlib import Path\n\n{imports}"
            imports += f'\ndata = np.load(Path(__file__).with_name("{beside}"))\n'
        shapes = "".join(f"    {called[n]}: {n.dtype.name}{list(n.shape) or ''}\n" for n in inputs)
        title = quoted(f"{self.of} and its gradients, of {self.file}.")
        parts = [
            "\n".join([f'"""{title}"""\n\n{imports}', *head]),
            *(helpers.texts if helpers else ()),
            f"def loss_and_gradients({', '.join(called[n] for n in inputs)}):\n"
            f'    """{quoted(self.of)}, and the gradients by name.\n\n{shapes}    """\n'
            + "\n".join(f"    {line}" for line in body),
            'if __name__ == "__main__":\n' + "\n".join(f"    {line}" for line in main if line),
        ]
        text = "\n\n\n".join(part.rstrip("\n") for part in parts) + "\n"
        if to == "torch" and "F." not in text.partition("\ndef ")[2]:
            text = text.replace("import torch.nn.functional as F\n", "")
        if to == "jax":
            start, end = text.index("import"), text.index("\nif __name__")
            text = text[:start] + modules_of_jax(text[start:end]) + text[end:]
        return text, stored

    def _called(self, roots: list[Node]) -> tuple[dict[Node, str], list[Node]]:
        """Names in the code, and what it is a function of: first what is differentiated."""
        names: dict[Node, str] = {}
        for name, node in self.names:
            names.setdefault(node, name)
        roots = [*roots, *(n for turn in self.turns for pair in turn.given for n in pair)]
        below = set(walk(roots, lambda n: () if is_given(n) else bodies(n) or n.inputs))
        graph = sorted(below, key=SEQUENCE)
        targets = [node for node, _ in self.gradients.values() if node.op is LEAF]
        given = [n for n in graph if is_given(n) and (n.op is LEAF or (n in names and not n.weak))]
        inputs = list(dict.fromkeys([*targets, *given]))
        taken = set(RESERVED)
        called: dict[Node, str] = {}
        for node in (*inputs, *(node for node in names if node in below)):
            if node not in called and (node in inputs or not is_given(node)):
                name = re.sub(r"\W+", "_", names.get(node, "leaf")).strip("_") or "value"
                if keyword.iskeyword(name) or name[0].isdigit():
                    name += "_"
                called[node] = free_name(name, taken)
        return called, inputs

    def _arrays(
        self, to: str, roots: list[Node], called: dict[Node, str], inputs: list[Node]
    ) -> Any:
        graph = Graph(roots, inputs, ())
        source = NumpySource(graph, {graph.of(n): name for n, name in reversed(called.items())},
                             RESERVED, LIBRARIES[to])  # fmt: skip
        import ast

        result = ast.unparse(source.tree(self.results[0][0]))
        rows = []
        for name, (node, g) in self.gradients.items():
            own = f"grad_{called[node]}"
            made = ast.unparse(source.tree(g))
            if made != own:
                source.lines.append(f"{own} = {made}" + (f"  # {g.shape}" if g.shape else ""))
            rows.append(f"{name!r}: {own}")
        lines = [*source.lines, f"return {result}, {{{', '.join(rows)}}}"]
        real = {n.dtype.name: called[n] for n in reversed(inputs) if n.dtype.kind == "f"}
        if list(real) == ["float32"]:  # the code is for any width
            of = f"{real['float32']}.dtype"
            lines = [line.replace("np.float32(", f"{of}.type(").replace("np.float32", of)
                     for line in lines]  # fmt: skip
        return lines, source.data, source.kernels

    def _torch(self, called: dict[Node, str], inputs: list[Node]) -> Any:
        own = {turn.node for turn in self.turns}
        roots = [n for pair in self.results for n in pair] * 2  # differentiated and returned
        roots += [g if node in own else node for node, g in self.gradients.values()]
        try:
            source = TorchText(self.made, called, inputs, RESERVED, roots, self.turns)
            source.passes(self.results, self.gradients)
        except AutodiffError as error:
            message = error.diagnostic.message
            raise fault("E404 no-counterpart", message, span=error.span) from None
        lines = [line.replace("torch.nn.functional.", "F.") for line in source.lines]
        return lines, source.data, None

"""Loops that carry a state of every kind, and uses of every kind, end as CPython ends them, with a
tensor beside that lets them be replayed, over few steps and over many."""

from __future__ import annotations

import contextlib
import io
from itertools import count

import pytest

from autodiff_cli.session import Options, run
from autodiff_cli.source import Source

from .replaying import early

# What the state `v` is before, and what a step makes of it.
STATES = {
    "whole": ("v = 3", "v += 1"),
    "remainder": ("v = 3", "v = v * 3 % 7"),
    "float": ("v = 0.5", "v = v * 0.5 + i"),
    "power": ("v = 1.0", "v *= 0.9"),
    "bool": ("v = True", "v = not v"),
    "compared": ("v = False", "v = i > 4 and i % 2 == 0"),
    "text": ("v = 'a'", "v = 'abc'[i % 3] + v[:2]"),
    "digits": ("v = ''", "v = v[-3:] + str(i)"),
    "nothing": ("v = None", "v = None if i % 3 else i"),
    "kinds": ("v = 0", "v = [i, float(i), str(i), None, (i,), [i]][i % 6]"),
    "list": ("v = []", "v.append(i)"),
    "window": ("v = [1, 2]", "v = v[1:] + [i]"),
    "queue": ("v = [1, 2]", "v.append(i); del v[0]"),
    "popped": ("v = list(range(99))", "v.pop()"),
    "slots": ("v = [0, 1, 2]", "v[i % 3] = i"),
    "swapped": ("v = [0, 1]", "v[0], v[1] = v[1], v[0]"),
    "extended": ("v = []", "v += [i, i]"),
    "sorted": ("v = [5, 3]", "v.insert(0, i % 4); v.sort()"),
    "dict": ("v = {}", "v[i % 4] = i"),
    "counted": ("v = {'n': 0}", "v['n'] += 1"),
    "merged": ("v = {'a': 1}", "v = {**v, i % 3: i}"),
    "groups": ("v = {}", "v.setdefault(i % 2, []).append(i)"),
    "set": ("v = set()", "v.add(i % 5)"),
    "tuple": ("v = (0, 1)", "v = (v[1], i)"),
    "nested": ("v = [[0], {'a': {'b': 1}}]", "v[0].append(i); v[1]['a']['b'] += 1"),
    "same": ("v = w_ = [0]", "w_[0] = w_[0] + 1"),
    "object": ("class B: n = 0\nb = B(); v = 0", "b.n += 1; v = b.n"),
    "of a class": ("class B: n = 0\nv = 0", "B.n += 2; v = B.n"),
    "closure": ("def make():\n    n = 0\n    def f():\n        nonlocal n\n        n += 1\n"
                "        return n\n    return f\nf = make(); v = 0", "v = f()"),
    "global": ("n = 0\ndef f():\n    global n\n    n += 2\n    return n\nv = 0", "v = f()"),
    "generator": ("def g():\n    k = 0\n    while True:\n        yield k\n        k += 3\n"
                  "it = g(); v = 0", "v = next(it)"),
    "iterator": ("it = iter(range(999)); v = 0", "v = next(it)"),
    "deque": ("import collections\nv = collections.deque(maxlen=2)", "v.append(i)"),
    "Counter": ("import collections\nv = collections.Counter()", "v[i % 3] += 1"),
    "smallest": ("v = 9", "v = min(v, abs(6 - i))"),
    "joined": ("v = ''", "v = ','.join(map(str, range(i % 4)))"),
    "inner loop": ("v = 0", "for k in range(i % 3): v += k"),
    "inner while": ("v = 0", "k = i\n    while k > 2:\n        k -= 3\n        v += 1"),
    "comprehension": ("v = []", "v = [k * i for k in range(3) if k != i]"),
    "walrus": ("v = 0", "(v := v + i)"),
    "divided": ("v = 7", "v, r = divmod(v * 5 + i, 11)"),
    "bits": ("v = 1", "v = (v << 1 ^ i) & 31"),
    "inverted": ("v = 1", "v = ~v - ~i"),
    "signs": ("v = 1", "v = -v + +i - (-i * 2)"),
    "range": ("v = range(0)", "v = range(i % 4)"),
    "function": ("v = 0", "f = lambda: i\n    v = f() + 1"),
    "partly": ("v = 0", "if i % 3 == 2: continue\n    v += 1"),
}  # fmt: skip
USES = [
    "print(i, v)",
    "print(f'{v!r:>9}|{v}', sep='-', end=';')",
    "print('{}:{k!r}'.format(i, k=v), '%d|%s' % (i, v))",
    "print([v, i], (i,), {i: v}, str(v))",
    "if v is None or v == 3: print('met', i)",
    "seen.append(v)",
    "seen = [v, *seen[:2]]",
    "kept[i % 3] = v",
    "pair = v, i",
    "print(bool(v), type(v).__name__, isinstance(v, int))",
    "u = v\n    v = u",
    "if i > 2 and not v: break",
]
WHEN = ["", "if i % 3 == 0: ", "if i > 5: "]
TURN = count()
AS_WRITTEN = {"closure", "global", "generator", "iterator", "deque", "inner loop"}


def cases() -> dict[str, list[tuple[str, str]]]:
    """Beginnings and bodies by state, for some of the uses; which ones and when the state changes
    goes round."""
    found: dict[str, list[tuple[str, str]]] = {}
    for number, (name, (start, step)) in enumerate(STATES.items()):
        for use in USES[(number + 2) % 3 :: 3]:
            when = "" if step.startswith(("for", "if", "k =", "f =")) else WHEN[next(TURN) % 3]
            head = f"seen, kept, u, pair = [], {{}}, None, None\n{start}\n"
            found.setdefault(name, []).append((head, f"    {use}\n    {when}{step}\n"))
    return found


CASES = cases()


def printed(text: str) -> str:
    found = io.StringIO()
    with contextlib.redirect_stdout(found):
        exec(compile(text, "loop", "exec"), {"__name__": "__main__"})
    return found.getvalue()


SHOWN = "print(repr((v, seen, kept, u, pair)))\n"
BESIDE = "    loss = (w * w).sum() * 2\n"


@pytest.mark.parametrize("name", STATES)
def test_as_python(name: str, replayed: list[int]) -> None:
    for number, (head, body) in enumerate(CASES[name]):
        for steps in (14,) if number % 3 else (2, 14):
            loop = f"for i in range({steps}):\n"
            text = (
                f"import torch\nw = torch.ones(2, requires_grad=True)\n{head}{loop}{BESIDE}{body}"
            )
            with early():
                found = run(Source(text + SHOWN, "loop.py"), Options(backward=False))
            assert found.error is None, (text, found.error)
            assert found.stdout == printed(head + loop + body + SHOWN), text
    assert bool(replayed) is (name not in AS_WRITTEN)

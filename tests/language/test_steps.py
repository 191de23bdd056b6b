"""How many steps of the limit each kind of work takes, as recorded (`RECORD_SAID=1` does)."""

from __future__ import annotations

from autodiff_cli.graph.state import STATE
from autodiff_cli.language.program.running import Program
from autodiff_cli.session import Options
from autodiff_cli.source import Source

from ..said import said

HEAD = """\
import torch, re, itertools, functools, collections, timeit
from torch.utils.data import DataLoader
f = lambda v: v
class A:
    def __init__(self, v): self.v = v
    def __eq__(self, other): return self.v == other.v
    def __lt__(self, other): return self.v < other.v
    def __hash__(self): return hash(self.v)
def gen(n):
    for i in range(n):
        got = yield i
def twice(n):
    yield from gen(n)
"""
WORK = r"""
{(1, (2, 3)): 1}
q = (1, 2, 3); q = (q, q, q); {(q, q): 1}
hash(((1, 2), (3, (4, 5)), 6))
[1, [2, 3]] == [1, [2, 3]]
(1, 2) == (1, 3)
A(1) == A(1)
[A(1), A(2)].index(A(2))
[3, 1, 2] < [3, 1, 1]
sorted([3, 1, 2])
sorted([3, 1, 2], key=f)
[A(3), A(1), A(2)].sort()
sorted([(2, 'a'), (1, 'b'), (2, 'b')], reverse=True)
max([3, 1, 2])
max(3, 1, 2, key=f)
min([A(3), A(1)])
sum([1, 2, 3])
any([0, 0, 1, 0])
list(map(f, [1, 2, 3]))
list(filter(f, [0, 1, 2]))
[f(v) for v in range(4)]
{v: f(v) for v in range(4)}
sum(v for v in range(4))
for v in range(5): pass
for v in gen(4): pass
for v in twice(4): pass
g = gen(3); next(g); g.send(1)
x, *y = gen(4)
i = 0\nwhile i < 4: i += 1
for a, b in zip(range(3), gen(3)): pass
list(enumerate(gen(3)))
list(itertools.islice(itertools.count(), 5))
list(itertools.islice(itertools.repeat(1), 5))
list(itertools.islice(itertools.cycle([1, 2]), 5))
list(itertools.chain([1, 2], gen(2)))
list(itertools.product([1, 2], [3, 4]))
list(itertools.permutations([1, 2, 3]))
list(itertools.combinations(range(4), 2))
list(itertools.accumulate([1, 2, 3]))
list(itertools.groupby([1, 1, 2]))
n = iter([1, 2, 0]); list(iter(lambda: next(n), 0))
functools.reduce(lambda a, b: a + b, [1, 2, 3])
re.findall('a', 'banana')
timeit.timeit(lambda: 1, number=3)
str([1, [2, 3], {'a': 4}])
repr(A(1))[:2]
f'{[1, 2]} {3:>4}'
'-'.join(str(v) for v in range(3))
collections.Counter('banana').most_common()
collections.deque(gen(4), maxlen=2)
dict(zip('ab', [1, 2])) == dict(b=2, a=1)
set(gen(3)) | {5, 6}
list(DataLoader(list(range(6)), batch_size=2))
list(torch.arange(3))
for row in torch.ones(3, 2): row.sum()
torch.tensor([[1, 2], [3, 4]]).tolist()
print(*range(3))
torch.func.vmap(f)(torch.ones(3))
torch.utils.data.random_split(range(4), [2, 2])
torch.nn.Linear(2, 2)(torch.ones(1, 2))
torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())(torch.ones(1, 2)).sum().backward()
w = torch.ones(2, requires_grad=True)\nfor v in range(40): w.sum().backward()
try:\n    f(1, 2)\nexcept TypeError: pass
"""


def test_steps_are_counted() -> None:
    found = []
    for work in WORK.strip().splitlines():
        Program(Source(HEAD + work.replace("\\n", "\n") + "\n", "t.py"), Options()).run()
        found.append(f"{STATE.steps}  {work}")
    text = "\n".join(found)
    said("language").compare("test_steps.py::test_steps_are_counted", [text], len(found))

"""Help topics as plain text, each short enough for one screen."""

from __future__ import annotations

TOPICS: dict[str, str] = {
    "exit-codes": """\
Exit codes of every command

  0    done; for `check`: everything passed
  1    the answer is "no": an assertion, expectation, snapshot or gradient
       check failed (E6xx)
  2    wrong command line, or a FILE named on it cannot be read
  3    the program is wrong: syntax, names, shapes, graph (E1xx to E4xx)
  4    the program is right, but evaluating it failed: NaN with --nan=error,
       singular matrix, too large, bad data file (E5xx, E7xx)
  5    `check` found nothing to check (--allow-empty makes it 0)
  70   internal error (E900): please report it
  130  interrupted (Ctrl-C)
  141  the reader of the output closed the pipe

Several files: the first of 70, 3, 4, 2, 1, 0 that occurred.
Explain one error: autodiff help E302
""",
    "json": """\
JSON output: autodiff run --format json FILE...

One document a line for each file, in order; a failed file is a document too.
Strict JSON: non-finite numbers are the strings "nan", "inf" and "-inf".

  {"schema": "autodiff.run/1", "file": "a.expr", "status": "ok",
   "loss": "loss",
   "tensors": {"A": {"shape": [2], "dtype": "float64", "requires_grad": true,
                     "is_leaf": true, "grad_fn": null,
                     "value": [1.0, 2.0], "grad": [2.0, 4.0]}, ...},
   "scalars": {"n": 3}, "stdout": "what print wrote"}

  {"schema": "autodiff.run/1", "file": "b.expr", "status": "error",
   "error": {"code": "E302", "kind": "broadcast", "message": "...",
             "help": "...", "line": 2, "column": 8, "end_line": 2,
             "end_column": 13}, "stdout": ""}

`tensors` holds every tensor with a top-level name when the program ends; the
grad of a tensor that the loss does not reach is null. Lines and columns count
from 1. Keys are only ever added within a schema version.
""",
    "formats": """\
Output formats: --format auto|rich|plain|json

  auto   rich on a terminal, else plain
  rich   tables, the graph as a tree, colours; fits the width of the terminal
  plain  one statement a line, every digit; valid program text, so that it can
         be compared, committed and run again
  json   one document a line for each file (autodiff help json)

Results go to stdout, errors and warnings to stderr.

Errors: --diagnostics full|concise|json|github
  full     a code frame with labels and help
  concise  demo.expr:3:7: error[E302]: message
  json     one object a line
  github   annotations of a workflow run

Colours: --color auto|always|never, then NO_COLOR, then FORCE_COLOR, then
whether the stream is a terminal.
""",
    "config": """\
Settings are options of a command (autodiff COMMAND --help) and a few variables
of the environment; there are no configuration files.

  NO_COLOR            not empty: no colours, no bold
  FORCE_COLOR         colours in a pipe too; 1, 2, 3: 16, 256, all colours
  COLUMNS             the width, in place of the terminal's
  TERM                dumb: plain output, lines read without editing
  CI                  set: `check` writes nothing and shows no progress
  GITHUB_ACTIONS      set: `check` reports as annotations
  AUTODIFF_HISTORY    the file with the history of sessions
  EDITOR, VISUAL      the editor of :edit
  OPENBLAS_NUM_THREADS
                      threads of matrix products; also MKL_, OMP_NUM_THREADS

The cache of `check --lf` is below XDG_CACHE_HOME, or ~/.cache/autodiff.
""",
    "language": """\
The language in one screen: a safe subset of Python with PyTorch's names

  x = 3                         a number or numeric list: a leaf, requires grad
  A = [[1, 2], [3, 4]]          float64; nested lists are matrices
  c = const([1, 2])             a constant; tensor(...) follows PyTorch
  y = relu(A @ A.T) + x**2      + - * / // % ** @, comparisons, indexing
  loss = mean(y)                `loss`, or the last scalar, is differentiated
  print(A.grad)                 gradients, when the loss is known
  assert A.grad.shape == (2, 2)

Statements: = += if/elif/else for while def return class with assert del import,
`;` or a new line between them, `#` for comments. Lists, dicts, tuples,
comprehensions, lambda and f-strings as in Python.

A file with an `import` line is a Python snippet: numbers and lists are
Python's own, torch.tensor(...) makes tensors, and the default is float32.

Data: load("x.npy"), .npz, .csv, .json, from the program's own folder.
Power is `**`, not `^`. Operations: autodiff ops. Errors: autodiff help E105.
""",
    "repl": """\
A session: autodiff, or autodiff repl FILE...

  ad> x = [1, 2]                statements run as they are entered; a value that
  ad> sum(x**2)                 stands alone is shown
  ad> :grad                     commands begin with a colon; :help lists them
  ad> :undo                     takes back the last statement, exactly

A statement that fails shows its error and changes nothing. An open bracket or
an indented block goes on in the next line; an empty line ends a block.

  Tab        completes names, operations with their signatures, files, commands
  Up         searches the history for what begins like the line
  Ctrl-C     interrupts a computation or drops the line; it never quits
  Ctrl-D     quits, as :quit does

Pasted prompts (`ad>`, `>>>`, `In [3]:`) are taken away. The history is kept in
~/.local/state/autodiff/history, or in the file that AUTODIFF_HISTORY names.
With --simple, or TERM=dumb, lines are read without editing or colours. Input
that is piped in runs statement by statement; the first error ends it.
""",
    "check": """\
Checks: autodiff check [PATH]...

Every program is its own regression test. Without a word written for it, the
gradient of every leaf is compared with finite differences.

  loss = sum(x * x)         #=> 30           the value, to the digits written
  assert A.grad == [[7, 10], [13, 16]]       tolerance by dtype
  assert allclose(y, z, rtol=1e-3)           another tolerance
  # check: wrt=A,B rtol=1e-6 hessian         settings of this file
  # check: nograd x                          x is not checked

  demo.expr.snap            results as plain text, made with --snapshot

--update rewrites expectations and snapshots, --review asks before each.
-k 'grad[x]' chooses items, -x stops at the first file that fails, --lf runs
what failed before, -j auto uses all cores, --junit FILE writes a report.

Kinks (relu at 0) are compared with the slopes at both sides. `detach` and
other cuts are named, and are no faults. pytest collects .expr files as well.
""",
}

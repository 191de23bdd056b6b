"""Explanations of E1xx (reading text) and E2xx (names, arguments and types)."""

from __future__ import annotations

from .entry import Entry

PROGRAMS: dict[str, Entry] = {
    "E101": Entry(
        "a bracket is never closed, or closed by another kind",
        "Every `(`, `[` and `{` needs its partner, and inside brackets lines join. So a missing "
        "bracket is often noticed only on a later line; the message points at the one that was "
        "opened.",
        "A = [[1, 2], [3, 4]\nloss = sum(A)",
        "A = [[1, 2], [3, 4]]\nloss = sum(A)",
    ),
    "E102": Entry(
        "the text does not follow the grammar here",
        "A word or sign stands where the grammar has no place for it: an operator without an "
        "operand, a missing `:`, a positional argument after a keyword argument, `=` where `==` "
        "was meant. The message says what was found and what would fit.",
        "x = 2\nloss = x * * 3",
        "x = 2\nloss = x * 3",
    ),
    "E103": Entry(
        "a string does not end, or an f-string is malformed",
        "A string in single or double quotes ends on the line where it begins; one in triple "
        "quotes may go on over several lines. In an f-string every `{` needs an expression and "
        "its `}`; write `{{` for the character itself.",
        "x = 2\nprint('x is, x)",
        "x = 2\nprint('x is', x)",
    ),
    "E104": Entry(
        "the indentation does not fit",
        "The lines of a block begin in the same column, further right than the line with the `:` "
        "that opens it. Tabs and spaces are not mixed, and a block has at least one line (`pass` "
        "does nothing).",
        "x = 2\nfor i in range(3):\nx = x * 2\nloss = x",
        "x = 2\nfor i in range(3):\n    x = x * 2\nloss = x",
    ),
    "E105": Entry(
        "`^` is not power",
        "As in Python and PyTorch, `^` is the exclusive or of the bits of integers and bools; it "
        "is not defined for floating point. Power is written `**`.",
        "x = [1, 2]\nloss = sum(x^2)",
        "x = [1, 2]\nloss = sum(x**2)",
    ),
    "E106": Entry(
        "a feature of Python that this language does not have",
        "The language is a small, safe subset of Python: expressions, assignments, `def`, "
        "`lambda`, `if`, `for`, `while`, `with`, `try`, generators and classes. `match`, `async`, "
        "byte strings and complex numbers are among what is left out.",
        "x = 2\nmatch x:\n    case 2:\n        loss = x * x",
        "x = 2\nloss = x * x if x == 2 else x",
    ),
    "E107": Entry(
        "the rows of a numeric list differ in length",
        "A nested list of numbers is a tensor, and a tensor is rectangular: all rows have the "
        "same length and all entries the same depth. The message points at the first row that "
        "differs.",
        "A = [[1, 2, 3], [4, 5]]\nloss = sum(A)",
        "A = [[1, 2, 3], [4, 5, 6]]\nloss = sum(A)",
    ),
    "E108": Entry(
        "brackets, blocks or operators are nested too deeply",
        "Nesting is limited to 200 levels, so that no text can exhaust the machine's stack. A "
        "program that needs more usually was generated; give the inner parts names.",
        "# 300 levels of brackets\nx = 2\nloss = ((((((x))))))  # and so on",
        "x = 2\ninner = x * x\nloss = inner + x",
    ),
    "E109": Entry(
        "the file is not UTF-8 text",
        "Program files are UTF-8, with or without a byte-order mark. Files saved as UTF-16, in an "
        "old code page, or data files given by mistake cannot be read as a program.",
        "# autodiff run data.npy        a data file given as a program",
        "x = load('data.npy')\nw = 1\nloss = sum(w * x)",
    ),
    "E110": Entry(
        "a number cannot be read",
        "The digits do not make a number of this language: an integer has more than 4300 digits, "
        "or a letter or underscore stands where none may. Floats are written `1.5`, `.5`, `1e-3`, "
        "and digits may be grouped as in `1_000`.",
        "x = 1__000\nloss = x * x",
        "x = 1_000\nloss = x * x",
    ),
    "E111": Entry(
        "a statement stands where it has no meaning",
        "`return` belongs inside a `def`; `break` and `continue` belong inside a `for` or a "
        "`while`. At module level the program ends where its text ends.",
        "x = 2\nloss = x * x\nreturn loss",
        "def f(x):\n    return x * x\nx = 2\nloss = f(x)",
    ),
    "E201": Entry(
        "a name is not defined",
        "The name is neither assigned by the program before this point, nor an operation, nor a "
        "constant of the language (`pi`, `e`, `inf`, `nan`). Names are case-sensitive: `b` and "
        "`B` are different.",
        "A = [1, 2]\nB = [3, 4]\nloss = sum(A * b)",
        "A = [1, 2]\nB = [3, 4]\nloss = sum(A * B)",
    ),
    "E202": Entry(
        "there is no such operation",
        "What is called is no function of the program and no operation of the language. "
        "`autodiff ops` lists them all, `autodiff ops --search TEXT` finds some, and the names "
        "are PyTorch's, with NumPy's beside them.",
        "x = [-1, 2]\nloss = sum(reul(x))",
        "x = [-1, 2]\nloss = sum(relu(x))",
    ),
    "E203": Entry(
        "PyTorch has this, but this language does not",
        "The name exists in PyTorch, but it lies outside what a differentiator of expressions "
        "needs: devices, files, processes, just-in-time compilation. The message names a "
        "replacement where there is one.",
        "import torch\nx = torch.tensor([1.0], requires_grad=True)\ntorch.save(x, 'x.pt')",
        "import torch\nx = torch.tensor([1.0], requires_grad=True)\nprint(x)",
    ),
    "E204": Entry(
        "`-D` names something that the program does not assign",
        "`-D NAME=VALUE` overrides a top-level assignment of the program, and a misspelt name must "
        "not be ignored silently. Write `-D +NAME=VALUE` to add a name that the program only "
        "reads.",
        "# autodiff run demo.expr -D rate=0.5\nx = 2\nloss = x * x",
        "# autodiff run demo.expr -D x=0.5\nx = 2\nloss = x * x",
    ),
    "E205": Entry(
        "a call has a wrong, missing or repeated argument",
        "The arguments do not fit the parameters: one is missing, there are too many, a keyword "
        "is unknown or given twice. `autodiff ops NAME` shows the signature of an operation.",
        "A = [[1, 2], [3, 4]]\nloss = sum(A, dims=0).sum()",
        "A = [[1, 2], [3, 4]]\nloss = sum(A, dim=0).sum()",
    ),
    "E206": Entry(
        "a name is used before it is assigned",
        "The program assigns this name, but only later, or in a branch that was not taken. "
        "Inside a `def`, a name assigned anywhere in the body is local to it, as in Python.",
        "loss = x * x\nx = 2",
        "x = 2\nloss = x * x",
    ),
    "E207": Entry(
        "the value has no such attribute or method",
        "Tensors have PyTorch's attributes and methods, other values those of their Python type. "
        "Names that begin with an underscore are never reachable.",
        "x = [[1, 2], [3, 4]]\nloss = sum(x.transposed)",
        "x = [[1, 2], [3, 4]]\nloss = sum(x.T)",
    ),
    "E208": Entry(
        "a value has the wrong type for this",
        "The operation is not defined for this kind of value: a function where a tensor belongs, "
        "a string in arithmetic, something called that is no function. The message names the type "
        "that was found.",
        "x = 2\nloss = x * sin",
        "x = 2\nloss = x * sin(x)",
    ),
    "E209": Entry(
        "the import is not one of the known namespaces",
        "An `import` does not load code: it only names the built-in namespaces `torch` (with `nn`, "
        "`nn.functional`, `optim`, `autograd`, `func`, `linalg`, `special`), `numpy` and `math`. "
        "Other modules and unknown members of these are refused.",
        "import torch\nimport pandas as pd\nx = torch.tensor([1.0], requires_grad=True)",
        "import torch\nimport numpy as np\nx = torch.tensor([1.0], requires_grad=True)",
    ),
    "E210": Entry(
        "a dict, list, tuple or string has no such item",
        "A key is missing from a dict, or an index lies outside a list, tuple or string. Positions "
        "count from 0, and -1 is the last.",
        "rates = {'slow': 0.01}\nx = 2\nloss = x * rates['fast']",
        "rates = {'slow': 0.01}\nx = 2\nloss = x * rates.get('fast', 0.1)",
    ),
    "E211": Entry(
        "the number of names and values differs",
        "An assignment to several names takes a value for each of them; a starred name takes the "
        "rest. A tensor is unpacked along its first dimension.",
        "a, b = [1, 2, 3]\nloss = a * b",
        "a, b, c = [1, 2, 3]\nloss = a * b * c",
    ),
    "E212": Entry(
        "the program raised an error itself",
        "The program ran into its own `raise`. The message is the program's; the position is the "
        "statement that raised it.",
        "def root(x):\n    if x < 0:\n        raise ValueError('negative')\n    return sqrt(x)\n"
        "x = -1\nloss = root(x)",
        "def root(x):\n    if x < 0:\n        raise ValueError('negative')\n    return sqrt(x)\n"
        "x = 4\nloss = root(x)",
    ),
}

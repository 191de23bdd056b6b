"""Explanations of E5xx (evaluation), E6xx (checks), E7xx (data files) and E900."""

from __future__ import annotations

from .entry import Entry

RUNS: dict[str, Entry] = {
    "E501": Entry(
        "a NaN appears",
        "An operation met a value outside its domain (the root or logarithm of a negative number, "
        "0/0, inf - inf), and NaN spreads to everything after it. It is a warning with `--nan "
        "warn`, an error with `--nan error` and in `autodiff check`; the message names the first "
        "operation.",
        "# autodiff run --nan error demo.expr\nx = [-1, 4]\nloss = sum(sqrt(x))",
        "# autodiff run --nan error demo.expr\nx = [-1, 4]\nloss = sum(sqrt(clamp(x, min=1e-12)))",
    ),
    "E502": Entry(
        "an infinite value appears",
        "A division by zero, the logarithm of 0, or a result beyond the largest number of the "
        "dtype. It is a warning with `--nan warn` and an error with `--nan error`; in a "
        "gradient it often means an infinite slope, as of sqrt at 0.",
        "# autodiff run --nan error demo.expr\nx = [0, 4]\nloss = sum(log(x))",
        "# autodiff run --nan error demo.expr\nx = [0, 4]\nloss = sum(log(x + 1e-12))",
    ),
    "E503": Entry(
        "the matrix is singular, or a factorization fails",
        "The matrix has no inverse, is not positive definite, or the algorithm did not converge. "
        "A small multiple of the identity makes such a matrix regular; `pinv` and `lstsq` do "
        "without an inverse.",
        "A = [[1, 2], [2, 4]]\nloss = sum(inv(A))",
        "A = [[1, 2], [2, 4]]\nloss = sum(inv(A + 0.01 * eye(2)))",
    ),
    "E504": Entry(
        "a value lies outside the domain of the operation",
        "The operation is not defined for this value and refuses it rather than answer NaN: a "
        "probability outside 0 to 1, a target class that does not exist, an integer divided by "
        "zero. The message names the value and where it is.",
        "p = [0.2, 1.5]\nloss = binary_cross_entropy(p, tensor([0.0, 1.0]))",
        "p = [0.2, 0.9]\nloss = binary_cross_entropy(p, tensor([0.0, 1.0]))",
    ),
    "E505": Entry(
        "the result would be too large",
        "Shapes are known before anything is computed, so a tensor, string or number beyond the "
        "memory limit is refused before it is made. `--max-memory` raises the limit.",
        "x = 2\nloss = sum(x * ones(1000000, 1000000))",
        "x = 2\nloss = sum(x * ones(1000, 1000))",
    ),
    "E506": Entry(
        "the program makes too many steps",
        "Loops are bounded, so that no program runs for ever. A `while` whose condition never "
        "becomes false is the usual cause; whole-tensor operations replace most long loops.",
        "x = 2\nwhile True:\n    y = x * x\nloss = y",
        "x = 2\ny = x\nwhile y < 100:\n    y = y * x\nloss = y",
    ),
    "E507": Entry(
        "functions call one another too deeply",
        "A recursion does not reach its end, or needs more depth than is allowed. Check the case "
        "that stops it, or use a loop.",
        "def power(x, n):\n    return x * power(x, n - 1)\nx = 2\nloss = power(x, 3)",
        "def power(x, n):\n    return x * power(x, n - 1) if n > 0 else 1\n"
        "x = 2\nloss = power(x, 3)",
    ),
    "E508": Entry(
        "the time limit is reached",
        "The evaluation took longer than `--timeout` allows and was stopped. Give it more time, or "
        "try smaller data first.",
        "# autodiff run --timeout 1 demo.expr\nx = 1\nfor i in range(10000000):\n"
        "    x = sin(x)\nloss = x",
        "# autodiff run --timeout 60 demo.expr\nx = 1\nfor i in range(1000):\n"
        "    x = sin(x)\nloss = x",
    ),
    "E509": Entry(
        "the interpreter's stack overflowed",
        "Values that are nested hundreds of thousands of levels deep, or functions that call one "
        "another through operators and hooks without end, use up the stack of the process that "
        "runs the program. It is ended then; the statement that ran is named where it is known.",
        "t = ()\nfor i in range(300000):\n    t = (t,)\nd = set([t])\nx = 2\nloss = x * len(d)",
        "t = []\nfor i in range(300000):\n    t.append(i)\nd = set(t)\nx = 2\n"
        "loss = x * len(d)",
    ),
    "E601": Entry(
        "an assertion failed",
        "The condition of an `assert` is false. Between tensors `==` compares shapes exactly and "
        "elements with the tolerance of their dtype; the message shows where they differ most.",
        "A = [1, 2]\nloss = sum(A * A)\nassert A.grad == [2, 5]",
        "A = [1, 2]\nloss = sum(A * A)\nassert A.grad == [2, 4]",
    ),
    "E602": Entry(
        "backward and finite differences disagree",
        "`autodiff check` compares every gradient with central differences. A `detach()`, a kink, "
        "a custom backward or a random draw on the way can make them differ; `# check: nograd x` "
        "excludes a leaf where that is meant.",
        "x = [1, 2, 3]\nloss = sum(x * x.detach())",
        "x = [1, 2, 3]\nloss = sum(x * x)",
    ),
    "E603": Entry(
        "an expectation differs",
        "The value written after `#=>` is not the value of the line, to the digits written. If the "
        "new value is right, `autodiff check --update` writes it into the file.",
        "x = 3\nloss = x * x  #=> 8",
        "x = 3\nloss = x * x  #=> 9",
    ),
    "E604": Entry(
        "a snapshot differs",
        "The results are not those in the `.snap` file beside the program. If the new ones are "
        "right, `autodiff check --update` writes them; a missing snapshot is made by "
        "`--snapshot`.",
        "# demo.expr.snap says: x.grad = 6.0\nx = 4\nloss = x * x",
        "# demo.expr.snap says: x.grad = 6.0\nx = 3\nloss = x * x",
    ),
    "E605": Entry(
        "a snapshot belongs to nothing",
        "A `.snap` file holds a value, or belongs to a program, that no longer exists. "
        "`autodiff check --prune` removes what is left over.",
        "# demo.expr.snap says: w.grad = 6.0\nx = 3\nloss = x * x",
        "# demo.expr.snap says: x.grad = 6.0\nx = 3\nloss = x * x",
    ),
    "E701": Entry(
        "a data file cannot be read",
        "The file does not exist, cannot be opened, or is no valid `.npy`, `.npz`, `.csv` or "
        "`.json` file. Paths are relative to the program's own file.",
        "X = load('no-such-file.npy')\nw = 1\nloss = sum(w * X)",
        "X = load('data.npy')\nw = 1\nloss = sum(w * X)",
    ),
    "E702": Entry(
        "a data file holds something else",
        "The file was read, but what is in it does not fit: another shape, a missing key, text "
        "where numbers belong, rows of different length. The message says what was found.",
        "data = load('data.npz')\nw = 1\nloss = sum(w * data['no-such-key'])",
        "data = load('data.npz')\nw = 1\nloss = sum(w * data['X'])",
    ),
    "E703": Entry(
        "the data file is pickled",
        "Reading pickled data can run any code, so it is never done. Save plain numeric arrays: "
        "`np.save(path, array)` of an array whose dtype is not object.",
        "X = load('objects.npy')\nw = 1\nloss = sum(w * X)",
        "X = load('numbers.npy')\nw = 1\nloss = sum(w * X)",
    ),
    "E704": Entry(
        "the file lies outside the folder of the program",
        "A program reads only files in its own folder and below, links resolved. `--allow-read "
        "DIR` allows another folder.",
        "X = load('../secret.csv')\nw = 1\nloss = sum(w * X)",
        "# autodiff run --allow-read ../data demo.expr\n"
        "X = load('../data/table.csv')\nw = 1\nloss = sum(w * X)",
    ),
    "E900": Entry(
        "an internal error",
        "This is a mistake in autodiff, not in the program. The traceback was saved to the file "
        "that the message names; please report it with the program that caused it.",
        "# any program that ends with exit code 70",
        "# the same program, once the mistake is mended",
    ),
}

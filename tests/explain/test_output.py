"""What `explain` prints: by width, with and without colours, as documents, one step a key."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from autodiff_cli.cli.commands.explain import KEYS

SNAPSHOTS = Path(__file__).parent / "snapshots"

NET = (
    "x = [[1, 2, 3], [4, 5, 6]]; b = [0.5, 1, 2]; w = 2\n"
    "h = relu(x*w + b - 5.5)\n"
    "loss = mean((h @ h.T)**2) + softmax(b, 0)[0]\n"
)
LOOP = "x = 0.5\nw = 1.25\nfor i in range(100):\n    h = x*w\n    x = tanh(h)\nloss = x*2\n"
LARGE = "W = reshape(tensor([0.001], requires_grad=True) * arange(60000), (200, 300))\n" + (
    "x = arange(300)/300\nloss = sum(tanh(W @ x))\n"
)
NAMES = "π = 3; 日本 = [[2, 1]]; loss = sum(π * 日本)"
PROGRAMS = {
    "net": NET,
    "loop": LOOP,
    "large": LARGE,
    "names": NAMES,
    "nan": "x = [1, -1]; loss = sum(log(x))",
    "empty": "x = zeros(0, 3, requires_grad=True); loss = sum(x * 2)",
    "views": "x = [3, 1, 2]; y = x**2; y[0] = 5; v, i = sort(y); loss = sum(v * x)",
    "leaf": "loss = 3.5",
}

UX = """\
forward
  1  t1 = A + B             [[6, 8], [10, 12]]
  2  t2 = t1 * A            [[6, 16], [30, 48]]
  3  loss = sum(t2)         100
backward        g(v) means d loss / d v
  seed  g(loss) = 1
  3  sum   every element gets the upstream gradient
           g(t2) = 1 * ones(2, 2)      [[1, 1], [1, 1]]
  2  *     product rule
           g(t1)  = g(t2) * A          [[1, 2], [3, 4]]
           g(A)  += g(t2) * t1         [[6, 8], [10, 12]]      path 1 of 2
  1  +     each side gets the upstream gradient
           g(A)  += g(t1)              [[1, 2], [3, 4]]        path 2 of 2
           g(B)   = g(t1)              [[1, 2], [3, 4]]
total
  g(A) = [[7, 10], [13, 16]]     2 paths added
  g(B) = [[1, 2], [3, 4]]
check   central differences agree: max abs diff < 1e-6
"""


def test_the_demo_reads_as_on_paper(cli):
    assert cli("explain", "demo.expr").out == UX
    assert cli("explain", "demo.expr", tty=True, NO_COLOR="1", COLUMNS="80").out == UX


@pytest.mark.parametrize("color", ["never", "always"])
@pytest.mark.parametrize(
    ("name", "width"),
    [*(("demo", width) for width in (120, 80, 44, 30)),
     ("net", 80), ("net", 30), ("loop", 120), ("loop", 44)],
)  # fmt: skip
def test_by_width_and_colour(cli, name: str, width: int, color: str):
    source = ["demo.expr"] if name == "demo" else ["-e", PROGRAMS[name]]
    result = cli("explain", *source, "--color", color, tty=True, COLUMNS=str(width), TERM="xterm")
    assert (result.code, result.err) == (0, "")
    bare = re.sub(r"\x1b\[[0-9;]*m", "", result.out)
    assert (bare != result.out) == (color == "always")
    suffix = "-color" if color == "always" else ""
    path = SNAPSHOTS / f"{name}-{width}{suffix}.txt"
    assert result.out == path.read_text("utf-8")
    assert all(len(line) <= width for line in bare.splitlines())


@pytest.mark.parametrize("width", [1, 39, 60, 72])
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ("net", "loop")])
def test_every_width_works(cli, name: str, width: int):
    result = cli("explain", "-e", PROGRAMS[name], "--format", "rich", COLUMNS=str(width))
    assert result.code == 0, result.err
    if width >= 40:
        assert all(len(line) <= width for line in result.out.splitlines() if "日" not in line)


def test_without_unicode(cli):
    result = cli("explain", "-e", NAMES, "--format", "rich", tty=True, encoding="ascii")
    assert result.code == 0
    result.out.encode("ascii")


def test_pipes_have_no_width(cli):
    out = cli("explain", "-e", LARGE, COLUMNS="30").out
    assert any(len(line) > 80 for line in out.splitlines())
    assert "norm" in out and "(200, 300)" in out and len(out.splitlines()) < 40


def test_symbolic_has_no_numbers(cli):
    out = cli("explain", "demo.expr", "--symbolic").out
    assert "g(A)  += g(t2) * t1  path 1 of 2" in out
    assert "[[" not in out and "check" not in out and "total" not in out


@pytest.mark.parametrize("wanted", ["t2", "(A+B) * A", "(A + B)*A", "t1 * A", "2"])
def test_one_step(cli, wanted: str):
    out = cli("explain", "demo.expr", "--node", wanted).out
    assert "product rule" in out and "each side" not in out
    assert "g(t2) = [[1, 1], [1, 1]]" in out  # what arrives is not told elsewhere


def test_every_value_of_a_name(cli):
    """Not what is made of one of them."""
    text = "x = 2.; s = x*x; s = s*3; loss = s*x"
    found = cli("explain", "-e", text, "--node", "s").out
    assert re.findall(r"g\((\S+)\) = \d+     upstream", found) == ["s#2", "s#1"]


@pytest.mark.parametrize("length", [59, 60])
def test_what_steps_there_are(cli, length: int):
    """Those with short texts."""
    name = "a" * (length - 4)
    said = cli("explain", "-e", f"{name} = 2.; loss = {name} * 3", "--node", "zz").err
    assert (f"{name} * 3" in said.split("it has")[1]) is (length < 60)


def test_the_steps_that_feed_a_leaf(cli):
    out = cli("explain", "demo.expr", "--node", "B").out
    assert "each side" in out and "product" not in out


def test_wrt_leaves_out_what_does_not_lead_there(cli):
    out = cli("explain", "demo.expr", "--wrt", "B").out
    assert "g(A)" not in out and "g(B) = [[1, 2], [3, 4]]" in out
    out = cli("explain", "-e", "x = 2; h = x*x; loss = h*3", "--wrt", "h").out
    assert "g(x)" not in out and re.search(r"total\n  g\(h\) = 3\n", out)


def test_composites_open(cli):
    closed = cli("explain", "-e", "x = [1, 2]; loss = softmax(x, 0)[0]").out
    opened = cli("explain", "-e", "x = [1, 2]; loss = softmax(x, 0)[0]", "--open", "softmax").out
    assert "exp(" not in closed and "exp(" in opened
    assert closed.partition("total")[2] == opened.partition("total")[2]


def test_broadcasting_is_undone_in_words(cli):
    out = cli("explain", "-e", NET).out
    assert re.search(r"g\(b\)  \+= sum\(g\(t\d\), 0\) .*\(3,\) was broadcast to \(2, 3\), path",
                     out)  # fmt: skip


def test_folded_steps_keep_their_numbers(cli):
    text = "xs = [tensor(1 + i / 9, requires_grad=True) for i in range(46)]\ns = xs[0]\n"
    text += "for i in range(1, 46):\n    s = s * xs[i]\nloss = s * 2\n"
    (step,) = json.loads(cli("explain", "-e", text, "--format", "json").out)["steps"][1:]
    given = {c["to"]: c["formula"] for c in step["contributions"]}
    assert given.pop("xs[0]") == "g(s#1) * d s#1 / d xs[0]"
    assert given == {f"xs[{i}]": f"g(s#{i}) * d s#{i} / d xs[{i}]" for i in range(1, 46)}


def test_loops_are_folded(cli):
    out = cli("explain", "-e", LOOP).out
    assert "x = tanh(h)  x 100" in out and "100 added" in out
    every = cli("explain", "-e", LOOP, "--all").out
    assert "path 100 of 100" in every


def test_what_a_snippet_prints_stands_beside_documents(cli):
    text = "import torch\nx = torch.tensor(2., requires_grad=True)\ny = x*x\ny.backward()\nprint(y)"
    said = "tensor(4., grad_fn=<MulBackward0>)\n"
    seen = cli("explain", "-e", text, tty=True, NO_COLOR="1")
    assert seen.out.startswith(f"{said}forward")
    for form, start in (("rich", said), ("plain", "forward"), ("markdown", "# Gradient of `y`"),
                        ("latex", "\\documentclass")):  # fmt: skip
        shown = cli("explain", "-e", text, "--to", form)
        assert shown.out.startswith(start)
        assert shown.err == ("" if form == "rich" else said)
    assert cli("derive", "-e", text, "--latex").err == said


def test_the_last_backward_is_explained(cli):
    text = (
        "import torch\nw = torch.tensor(3., requires_grad=True)\n"
        "for i in range(3):\n    (w * i).backward()\n"
    )
    out = cli("explain", "-e", text).out
    assert "backward 3 of 3" in out and "g(w) = 2 * 1" in out


def test_a_loss_of_one_element_starts_with_one(cli):
    out = cli("explain", "-e", "x = [2]; loss = x*x").out
    assert "d loss / d v" in out and "given" not in out


def test_hooks(cli):
    text = (
        "import torch\nx = torch.tensor([1., 2.], requires_grad=True)\nh = x*2\n"
        "h.register_hook(lambda g: g*10)\nh.sum().backward()\n"
    )
    out = cli("explain", "-e", text).out
    assert "g(h) = [10, 10]     replaced by a hook" in out and "g(x) = [20, 20]" in out
    assert "a hook replaces a gradient" in out


# -- documents ------------------------------------------------------------------------------------

NASTY = "a_b = 2; x = [1, 2]\nfor i in range(45):\n    x = x * 1.0  # 50% {off} \\ $ & ~ ^\n" + (
    "loss = sum(x**a_b) * 1e-30"
)


@pytest.mark.parametrize("text", [*PROGRAMS.values(), NASTY])
@pytest.mark.parametrize("further", [[], ["--symbolic"]])
def test_latex_is_balanced_and_escaped(cli, text: str, further: list[str]):
    result = cli("explain", "-e", text, "--latex", *further)
    assert result.code == 0
    body = result.out
    opened: list[str] = []
    for word, name in re.findall(r"\\(begin|end)\{(\w+\*?)\}", body):
        if word == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert not opened
    bare = re.sub(r"\\[\\{}$&#%_]", "", body)
    assert bare.count("{") == bare.count("}") and bare.count("$") % 2 == 0
    assert body.count(r"\left") - body.count(r"\leftarrow") == body.count(r"\right")
    assert "#" not in bare and "%" not in bare
    outside = re.sub(r"\\begin\{align\*\}.*?\\end\{align\*\}", "", bare, flags=re.DOTALL)
    assert "&" not in outside and "^" not in re.sub(r"\$[^$]*\$", "", outside)


def test_latex_of_the_demo(cli):
    out = cli("explain", "demo.expr", "--latex").out
    assert out == (SNAPSHOTS / "demo.tex").read_text("utf-8")


def test_latex_of_letters_of_other_scripts(cli):
    out = cli("explain", "-e", NAMES, "--latex").out
    assert r"\pi" in out and "ensuremath" not in out and r"\overline{\text{日本}}" in out


def test_markdown_of_the_demo(cli):
    out = cli("explain", "demo.expr", "--markdown").out
    assert out == (SNAPSHOTS / "demo.md").read_text("utf-8")


def test_markdown_tables_survive_any_name(cli):
    text = "d = {'a|b': 2}\nx = 3\nloss = where((x > 1) | (x < 0), x*d['a|b'], x)"
    out = cli("explain", "-e", text, "--markdown").out
    assert r"(x > 1) \| (x < 0)" in out
    rows = [line for line in out.splitlines() if line.startswith("| ")]
    assert rows and all(len(re.findall(r"(?<!\\)\|", row)) == 4 for row in rows)


def test_how_far_differences_are_off(cli):
    """Rounding leaves something, which the records of other tests leave out."""
    text = cli(
        "explain", "-e", "x = [0.3, 1.7, 0.9]; loss = sum(exp(x) * x)", "--format", "json"
    ).out
    check = json.loads(text)["check"]
    assert 0 < check["max_abs_diff"] < 1e-6


def test_json(cli):
    (line,) = cli("explain", "demo.expr", "--format", "json").out.splitlines()
    document = json.loads(line)
    assert document["schema"] == "autodiff.explain/1" and document["objective"] == "loss"
    assert document["totals"]["A"]["value"] == [[7, 10], [13, 16]]
    assert [s["op"] for s in document["steps"]] == ["sum", "*", "+"]
    assert document["check"]["kind"] == "right"
    lines = cli("explain", "-e", PROGRAMS["nan"], "--format", "json").out
    assert json.loads(lines)["forward"][0]["value"] == [0, "nan"]


@pytest.mark.parametrize(
    ("name", "start"),
    [("e.md", "# Gradient"), ("e.tex", "\\documentclass"), ("e.json", "{"), ("e.txt", "forward")],
)
def test_files_by_suffix(cli, tmp_path: Path, name: str, start: str):
    result = cli("explain", "demo.expr", "-o", name)
    assert (result.code, result.out) == (0, "")
    assert (tmp_path / name).read_text("utf-8").startswith(start)


# -- one step a key -------------------------------------------------------------------------------


def bare(shown: str) -> str:
    """What is shown without the questions for keys and the lines of the program."""
    shown = re.sub(r"any key[^\r]*\r *\r", "", shown)
    return re.sub(r"(?m)^  3 \| loss = .*\n", "", shown)


def test_each_step_shows_its_place_in_the_program(cli, monkeypatch):
    monkeypatch.setattr("click.getchar", lambda: " ")
    arguments = {"tty": True, "stdin_tty": True, "COLUMNS": "80", "TERM": "xterm-256color"}
    shown = cli("explain", "demo.expr", "--step", **arguments).out
    marked = re.findall(r"\x1b\[7m(.*?)\x1b\[0m", shown)
    assert marked == ["sum((A + B) * A)", "(A + B) * A", "A + B"]
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert plain.count("  3 | loss = sum((A + B) * A)\n") == 3
    for width in (len(KEYS), len(KEYS) + 1):
        shown = cli("explain", "demo.expr", "--step", **{**arguments, "COLUMNS": str(width)}).out
        assert (KEYS in shown) == (width > len(KEYS)) != ("key: next\r" in shown)
    narrow = cli("explain", "demo.expr", "--step", **{**arguments, "COLUMNS": "24"}).out
    assert all(
        len(line) <= 24
        for line in re.sub(r"\x1b\[[0-9;]*m|key: next\r *\r", "", narrow).split("\n")
    )


@pytest.mark.parametrize("back", ["b", "\x1b[d", "\x1b[a"])
def test_steps_go_back_too(cli, monkeypatch, back: str):
    keys = iter([" ", " ", back, " ", "q"])
    monkeypatch.setattr("click.getchar", lambda: next(keys))
    arguments = {"tty": True, "stdin_tty": True, "NO_COLOR": "1", "COLUMNS": "80"}
    result = cli("explain", "demo.expr", "--step", **arguments)
    first, third = map(UX.index, ("backward", "  2  *     product"))
    written = f"\x1b[{UX[first:third].count(chr(10)) + 1}F\x1b[J"  # a line of the program too
    assert bare(result.out) == UX[:third] + written + UX[first:third]
    keys = iter([back, "q"])
    assert bare(cli("explain", "demo.expr", "--step", **arguments).out) == (
        UX[:first] + "\x1b[4F\x1b[J" + UX[:first]
    )
    keys = iter([back, "q"])
    assert "\x1b[" not in cli("explain", "demo.expr", "--step", **arguments, TERM="dumb").out


def test_step_waits_on_a_terminal_only(cli, monkeypatch):
    assert cli("explain", "demo.expr", "--step").out == UX
    arguments = {"tty": True, "stdin_tty": True, "NO_COLOR": "1", "COLUMNS": "80"}
    keys = iter(["\r", "\r", "q", "a", ""])
    monkeypatch.setattr("click.getchar", lambda: next(keys))
    result = cli("explain", "demo.expr", "--step", **arguments)
    shown = bare(result.out)
    assert result.code == 0 and shown == UX[: UX.index("  2  *     product")]
    result = cli("explain", "demo.expr", "--step", **arguments)
    assert bare(result.out) == UX
    result = cli("explain", "demo.expr", "--step", **arguments)
    assert result.out.startswith("forward") and "backward" not in result.out


def test_many_parts_are_shown_by_their_ends(cli):
    """Forty layers: 80 gradients of one statement, and sixty statements in a row."""
    program = (
        "import torch\nnet = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(40)])\n"
        "loss = net(torch.ones(1, 2)).sum()\nloss.backward()\n"
    )
    out = cli("explain", "-e", program).out
    assert out.count("… 56 more (--all)") == 2 and len(out.splitlines()) < 70
    assert "g(net.0.weight)" in out and "g(net.39.bias)" in out and "net.20." not in out
    assert "net.20.bias" in cli("explain", "-e", program, "--all").out
    chain = "h0 = 0.5\n" + "".join(f"h{i + 1} = tanh(h{i} * 1.01)\n" for i in range(60))
    found = cli("explain", "-e", f"{chain}loss = h60")
    assert found.out.count("… 36 more (--all)") == 2
    assert "h12 = tanh(h11 * 1.01)" in found.out and "h30 =" not in found.out
    document = json.loads(cli("explain", "-e", f"{chain}loss = h60", "--format", "json").out)
    assert len(document["steps"]) == 60


def test_statements_are_shown_by_what_they_compute(cli):
    """Neither `out = return f(x)` nor `h = h, _ = f(x)`: a statement of many operations."""
    layers = " + ".join(f"tanh({at} * x)" for at in range(2, 24))
    program = (
        f"x = 0.5\ndef f(x):\n    return {layers}\ndef g(x):\n    return tanh(x), sin(x)\n"
        "h, _ = g(f(x))\nloss = h * 2\n"
    )
    shown = cli("explain", "-e", program).out
    forward = shown.partition("backward")[0]
    assert "= return" not in forward and "= tanh(2 * x) + tanh(3 * x)" in forward
    text = "x = 0.5\n" + "".join(f"y{at}, _ = sin(x) * {at}, 1\n" for at in range(2, 24))
    text += f"loss = {' + '.join(f'y{at}' for at in range(2, 24))}\n"
    assert "y5 = sin(x) * 5, 1" in cli("explain", "-e", text).out


@pytest.mark.parametrize("call", ["linalg.norm(x)", "norm(x)", "linalg.norm(x, dim=0)[1]"])
def test_gradient_of_a_norm(cli, call: str) -> None:
    out = cli("explain", "-e", f"x = [[1, 2], [3, 4]]; loss = {call}").out
    assert "where(" not in out
    assert re.search(r"g\(x\) = .*x / (t1|loss)|g\(x\) = g\(t1\) / t1 \* x", out)


def test_gradient_of_a_norm_that_is_0(cli) -> None:
    out = cli("explain", "-e", "x = [[1, 2], [0, 0]]; loss = sum(linalg.norm(x, dim=1))").out
    assert "where(t1[:, None] == 0, 0, x / t1[:, None])  [[0.447214, 0.894427], [0, 0]]" in out

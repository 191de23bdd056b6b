"""What a person sees: recorded output at four widths with and without colour, degraded streams,
terminals that close."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from autodiff_cli.cli.streams import Environment
from autodiff_cli.render.heat import background, heated, scale_of
from autodiff_cli.render.pictures.blocks import COLUMNS, ROWS, picture

from ..together import together
from .conftest import Stream

SNAPSHOTS = Path(__file__).parent / "snapshots"
WIDTHS = (120, 80, 44, 30)

# Whole numbers and quarters, so that every machine prints the same digits.
PROGRAMS = {
    "demo": "A = [[1, 2], [3, 4]]\nB = [[5, 6], [7, 8]]\nloss = sum((A + B) * A)\n",
    "layers": (
        "X = const([[1.0, -2, 5], [3, 4, -1]])\n"
        "W = (arange(72) - 36.0).reshape(3, 24).requires_grad_()\n"
        "b = [0.25, -0.5, 0.75, -1]\n"
        "h = relu(X @ W)\n"
        "k = h[:, :4] + b\n"
        "unused = [1.5, 2]\n"
        "n = 2\n"
        "loss = sum(k * k) / n + sum(h) * 0.25\n"
    ),
    "nan": "x = [-1, 0, 4]\nloss = sum(sqrt(x))\n",
    "heat": "W = (arange(48) - 20.0).reshape(4, 12).requires_grad_()\nloss = sum(W * W)\n",
}
EXTRA = {"heat": ("--heat", "W,W.grad")}
COLORS = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


@together([
    ("", 100), ("80", 80), ("00080", 80), ("7", 20), ("99999", 99999), ("100000", 100), ("0", 100),
    ("-80", 100), ("²", 100), ("0000010000000", 100), ("9" * 5000, 100),
])  # fmt: skip
def test_columns_of_the_environment(columns: str, width: int) -> None:
    stream = Stream()
    assert Environment(None, stream, stream, {"COLUMNS": columns}).width(stream) == width


@pytest.mark.parametrize("colors", [False, True], ids=["", "color"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_recorded(cli, tmp_path: Path, name: str, width: int, colors: bool):
    (tmp_path / f"{name}.expr").write_text(PROGRAMS[name])
    variables = COLORS if colors else {"NO_COLOR": "1"}
    result = cli(f"{name}.expr", *EXTRA.get(name, ()), tty=True, COLUMNS=str(width), **variables)
    assert result.code == 0
    path = SNAPSHOTS / f"{name}-{width}{'-color' if colors else ''}.txt"
    if os.environ.get("RECORD_LOOKS"):
        path.write_text(result.out, "utf-8")
    assert result.out == path.read_text("utf-8")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", result.out)
    assert all(len(line) <= width for line in plain.splitlines())
    if colors and name != "heat":  # colours change nothing but colours, and say what they mean
        plain = re.sub(r"(?m)^((?:Values|Gradients).*?)\s+(?:(?:< 0|> 0|nan) ?)+$", r"\1", plain)
        assert plain == (SNAPSHOTS / f"{name}-{width}.txt").read_text("utf-8")


def test_no_value_is_lost_at_any_width(cli):
    text = "x = [123.456, -7.25]\ny = 98765.4\nloss = sum(x * y) / 1000\n"
    for width in range(20, 130, 5):
        out = cli("-", stdin=text, tty=True, NO_COLOR="1", COLUMNS=str(width)).out
        for number in ("123.456", "-7.25", "98765.4", "11477", "98.7654"):
            assert number in out, (width, number)


# ------------------------------------------------------------------ degraded streams


def test_no_color_has_no_bold_either(cli):
    out = cli("demo.expr", tty=True, NO_COLOR="1", TERM="xterm-256color").out
    assert "\x1b" not in out
    assert cli("demo.expr", tty=True, NO_COLOR="", TERM="xterm-256color").out != out


@pytest.mark.parametrize(("level", "code"), [("1", "\x1b[36m"), ("2", "48;5;"), ("3", "48;2;")])
def test_forced_colors_have_levels(cli, level: str, code: str):
    out = cli("demo.expr", "--format", "rich", FORCE_COLOR=level).out
    assert code in out
    assert ("48;" in out) == (level != "1")


def test_a_dumb_terminal(cli):
    assert cli("demo.expr", tty=True, TERM="dumb").out.startswith("# autodiff.plain/1")
    forced = cli("demo.expr", "--format", "rich", tty=True, TERM="dumb", COLUMNS="60").out
    assert forced.startswith("Values")
    assert "\x1b" not in forced


@pytest.mark.parametrize("name", ["nan", "heat"])
def test_without_unicode(cli, tmp_path: Path, name: str):
    (tmp_path / f"{name}.expr").write_text(PROGRAMS[name])
    argv = (f"{name}.expr", *EXTRA.get(name, ()))
    for width in WIDTHS:
        out = cli(*argv, tty=True, encoding="ascii", COLUMNS=str(width), **COLORS).out
        assert out.isascii()
        assert "log10" not in out
    assert cli("graph", f"{name}.expr", tty=True, encoding="ascii").out.isascii()


def test_forced_tables_in_a_pipe_are_100_wide(cli):
    text = "x = [" + ", ".join(f"{i}.125" for i in range(40)) + "]; loss = sum(x)"
    lines = cli("-e", text, "--format", "rich").out.splitlines()
    assert 80 < max(map(len, lines)) <= 100


# ------------------------------------------------------------------ messages and help

ERRORS = Path(__file__).parents[2] / "samples" / "errors"


@pytest.mark.parametrize("width", [80, 44])
@pytest.mark.parametrize(
    "name",
    [
        "E302-broadcast.expr",
        "E402-backward.py",
        "E407-through-a-view.py",
        "E503-cholesky.expr",
        "W501-nan.expr",
    ],
)
def test_messages_fit_the_terminal(cli, tmp_path: Path, name: str, width: int):
    (tmp_path / "p.expr").write_text((ERRORS / name).read_text())
    shown = cli("p.expr", tty=True, COLUMNS=str(width), NO_COLOR="1").err
    assert all(len(line) <= width for line in shown.splitlines())
    # Not broken for tools that read it.
    piped = cli("p.expr", COLUMNS=str(width)).err
    assert piped == cli("p.expr").err
    heading = piped.split("\n")[0].split()
    assert shown.split()[: len(heading)] == heading
    assert piped.split("\n")[1].strip().startswith("--> p.expr:")


def test_an_empty_program_says_so_on_a_terminal(cli, tmp_path: Path):
    (tmp_path / "p.expr").write_text("# nothing yet\n")
    assert cli("p.expr") == (0, "", "")
    assert cli("p.expr", "-q", tty=True) == (0, "", "")
    shown = cli("p.expr", tty=True)
    assert (shown.out, shown.err) == ("", "p.expr computes nothing: there is nothing to show\n")
    assert cli("-e", "print(1)", tty=True, NO_COLOR="1").err == ""


def test_places_are_links_on_a_terminal(cli, tmp_path: Path):
    (tmp_path / "a b.expr").write_text("x = [1, 2\n")
    err = cli("a b.expr", tty=True, TERM="xterm-256color").err
    link = f"\x1b]8;;file://{tmp_path}/a%20b.expr\x1b\\a b.expr:1:5\x1b]8;;\x1b\\"
    assert link in err
    for variables in ({"tty": True, "NO_COLOR": "1"}, {"FORCE_COLOR": "1"}):
        assert "]8;" not in cli("a b.expr", **variables).err
    assert "]8;" not in cli("-e", "x = [1, 2", tty=True, TERM="xterm-256color").err


@pytest.mark.parametrize("width", [80, 44])
@pytest.mark.parametrize(
    "words",
    [
        ["rnu"],
        ["run", "--lsos"],
        ["help", "nothing"],
        ["ops", "sofmax"],
        ["derive"],
        ["jacobian", "--auto"],
    ],
)
def test_refusals_fit_the_terminal(cli, words: list[str], width: int):
    result = cli(*words, tty=True, stdin_tty=True, COLUMNS=str(width))
    assert result.code == 2
    assert result.err.startswith("error: ")
    assert "help: " in result.err
    assert all(len(line) <= width for line in result.err.splitlines())
    wide = cli(*words, stdin_tty=True, COLUMNS=str(width)).err
    assert result.err.split() == wide.split()
    assert all(line.startswith(("error: ", "help: ")) for line in wide.splitlines())


@pytest.mark.parametrize(
    "word", ["", "exit-codes", "config", "language", "json", "E302", "softmax"]
)
def test_help_fits_the_terminal(cli, word: str):
    words = ["help", word] if word else ["help"]
    piped = cli(*words).out
    for width in (80, 44):
        shown = cli(*words, tty=True, COLUMNS=str(width)).out
        assert all(len(line) <= width for line in shown.splitlines())
        assert shown.split() == piped.split()
    assert cli(*words, tty=True, COLUMNS="200").out == piped


SECOND = "x = [2, -1, 0.5]\nw = [3, 0.5, -2]\nb = 1\nloss = sum((1 - sigmoid(w * x + b)) ** 2)\n"


@pytest.mark.parametrize("width", [80, 44])
@pytest.mark.parametrize(
    "words", [["derive"], ["hessian", "--eig", "--wrt", "w"], ["graph", "--values", "--grads"]]
)
def test_formulas_and_remarks_fit_the_terminal(cli, tmp_path: Path, words: list[str], width: int):
    (tmp_path / "p.expr").write_text(SECOND)
    shown = cli(*words, "p.expr", tty=True, NO_COLOR="1", COLUMNS=str(width)).out
    assert all(len(line) <= width for line in shown.splitlines())
    if words == ["derive"]:
        piped = cli(*words, "p.expr").out
        assert len(piped.splitlines()) == 6  # each with a name for its sigmoid
        assert shown.split() == piped.split()


def test_a_failed_check_fits_the_terminal(cli, tmp_path: Path):
    (tmp_path / "p.expr").write_text("x = 2\nloss = x * x  #=> 5\n")
    assert "FAILED p.expr::expect[2]     re-run: autodiff" in cli("check", "p.expr").out
    narrow = cli("check", "p.expr", tty=True, COLUMNS="44").out
    assert "FAILED p.expr::expect[2]\n    re-run: autodiff check p.expr" in narrow


def test_options_of_a_narrow_terminal_have_their_text_below(cli):
    out = cli("run", "--help", tty=True, COLUMNS="44").out
    assert "  --wrt NAME,...\n        With respect to what" in out
    assert "  --wrt NAME,...           With" in cli("run", "--help", tty=True, COLUMNS="80").out


# ------------------------------------------------------------------ colours of numbers


def test_colours_are_symmetric():
    assert background(0.0) == "" == background(float("nan"))
    red, blue = background(1.0), background(-1.0)
    assert re.findall(r"\d+", red)[0] == re.findall(r"\d+", blue)[2] == "210"
    sizes = [int(re.findall(r"\d+", background(v))[0]) for v in (0.1, 0.4, 0.7, 1.0)]
    assert sizes == sorted(set(sizes))


def test_only_numbers_are_coloured():
    text = heated("[ 1, -2, nan, … 4 more columns]", 2.0)
    assert [text.plain[s.start : s.end] for s in text.spans] == ["1", "-2", "nan"]
    assert heated("37% zero   0 nan   0 inf", 1.0).spans[0].style == "dim"
    assert scale_of(np.array([1.0, -3.0, np.inf, np.nan])) == 3.0
    assert scale_of(np.array([True])) == scale_of(np.zeros(0)) == 0.0


def test_the_legend_has_what_occurs(cli):
    def legends(text: str) -> list[str]:
        shown = cli("-e", text, tty=True, COLUMNS="80", **COLORS).out
        plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
        return [line[9:].strip() for line in plain.split("\n") if line[:6] in ("Values", "Gradie")]

    for sign in ("", "-"):  # both ends of the scale, once
        text = f"x = [1, 2]; loss = {sign}sum(x)"
        assert legends(text) == ["< 0 > 0", "d loss / d name"]
    assert legends("x = [0, 0]; loss = sum(0 * x)") == ["", "d loss / d name"]
    assert legends("x = [0, 4]; y = sqrt(x); loss = sum(x**2 - y)") == [
        "< 0 > 0", "d loss / d name   inf"
    ]  # fmt: skip


def test_stacked_gradients_keep_their_extremes(cli):
    text = "x = [1, -2]; loss = sum(x**2)"
    shown = cli("-e", text, "--only", "gradients", tty=True, NO_COLOR="1", COLUMNS="44").out
    assert "x  (2,)  norm 4.47214  min -4  max 2\n  [2, -4]\n" in shown


def test_a_wrapped_row_keeps_the_colours_of_the_whole(cli):
    text = "x = [" + ", ".join(["1.125"] * 30 + ["9.5"]) + "]; loss = sum(x)"
    out = cli("-e", text, "--only", "values", tty=True, COLUMNS="44", **COLORS).out
    colours = set(re.findall(r"48;2;([\d;]+)m1\.125", out))
    assert len(colours) == 1


# ------------------------------------------------------------------ pictures


@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("shape", [(), (7,), (3, 4), (300, 200), (1, 1000), (1000, 1), (2, 3, 50)])
def test_pictures_are_bounded(shape: tuple[int, ...], color: bool):
    array = np.linspace(-1, 1, int(np.prod(shape, dtype=int))).reshape(shape)
    for width in (120, 44, 30, 8):
        title, *lines = picture("x", array, color=color, unicode=True, width=width)
        drawn = [line for line in lines if not line.plain.startswith("  ")]
        assert 1 <= len(drawn) <= (ROWS // 2 if color else ROWS)
        assert all(len(line.plain) <= min(width, 1 + 2 * COLUMNS) for line in drawn)
        assert title.plain.startswith("x")


def test_pictures_of_odd_tensors():
    for array in (np.zeros((0, 3)), np.array(["a"]), np.zeros((2, 2)), np.array([np.nan, np.inf])):
        for color in (False, True):
            assert picture("x", array, color=color, unicode=True, width=40)
    (_, line) = picture("x", np.array([0.0, 1.0, np.nan, 0.3]), color=False, unicode=True, width=60)
    assert line.plain == "   ██!!░░"
    large, *_ = picture("x", np.ones((45, 100)), color=False, unicode=True, width=100)
    assert "means of 3x3" in large.plain  # 15 rows and 34 columns


def test_names_of_pictures(cli):
    assert cli("demo.expr", "--heat", "C").code == 3
    assert "did you mean `loss`" in cli("demo.expr", "--heat", "los").err
    none = cli("-e", "x = const([1, 2]); w = 2; loss = w * 3", "--heat", "x.grad")
    assert (none.code, none.out) == (2, "")
    assert "`x` has no gradient" in none.err


# ------------------------------------------------------------------ large and many


def test_many_names_and_gradients(cli):
    lines = ["w = [1, 2]", "h0 = w * 1"] + [f"h{i} = h{i - 1} + 1" for i in range(1, 40)]
    out = cli("-", stdin="\n".join([*lines, "loss = sum(h39)"]), tty=True, NO_COLOR="1").out
    assert "… 39 intermediate values not shown (--all, --show 'h*')" in out
    assert "… (--all)" in out
    assert re.search(r"w +\(2,\) +\[1, 1\]", out)


def test_a_guilty_node_of_a_loop_is_marked_once(cli):
    text = "x = [1.5, 3]\nfor i in range(4):\n    x = sqrt(x - 1)\nloss = sum(x)\n"
    out = cli("-", stdin=text, tty=True, NO_COLOR="1", COLUMNS="100").out
    assert out.count("<- nan starts here") == 1
    inf = cli("-e", "x = [0, 1]; loss = sum(1 / x)", tty=True, NO_COLOR="1").out
    assert inf.count("<- inf starts here") == 1


# ------------------------------------------------------------------ terminals


def test_a_terminal_that_closes(tmp_path: Path, project: Path):
    import pty

    (tmp_path / "long.expr").write_text(
        "x = 1.0\nfor i in range(400000):\n    print(i)\nloss = x * x\n"
    )
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "autodiff_cli", "long.expr"], stdin=subprocess.DEVNULL,
        stdout=follower, stderr=subprocess.PIPE, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(project), "TERM": "xterm"},
    )  # fmt: skip
    os.close(follower)
    assert os.read(leader, 100)
    os.close(leader)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (4, 141)
    assert b"Traceback" not in err


def test_a_terminal_of_no_size(cli, monkeypatch):
    def nothing(descriptor: int) -> os.terminal_size:
        return os.terminal_size((0, 0))

    monkeypatch.setattr(os, "get_terminal_size", nothing)
    assert cli("demo.expr", tty=True, NO_COLOR="1").out == (SNAPSHOTS / "demo-80.txt").read_text(
        "utf-8"
    )


def test_colours_are_those_of_each_terminal(cli):
    """Also where this process wrote on another kind of terminal before."""
    few = cli("demo.expr", tty=True, TERM="xterm-256color").out
    many = cli("demo.expr", tty=True, **COLORS).out
    assert "38;5;" in few and "38;2;" in many and "38;5;" not in many


@pytest.mark.parametrize("width", [44, 60, 80])
def test_arrays_that_differ_stand_below_one_another_where_there_is_no_room(
    cli, tmp_path: Path, width: int
):
    (tmp_path / "fail.expr").write_text("A = [[1, 2], [3, 4]]\nloss = sum(A)\n"
                                        "assert A.grad == [[1, 1], [1, 2]]\n")  # fmt: skip
    said = cli("check", str(tmp_path / "fail.expr"), tty=True, COLUMNS=str(width), NO_COLOR="1")
    shown = said.out + said.err
    table = shown[shown.index("index ") : shown.index("help: ")].split("\n")
    assert all(len(line) <= width for line in table)
    for word in ("abs diff", "rel diff", "allowed", "left - right", "[[ .,  .],", " [ ., -1]]"):
        assert sum(word in line for line in table) == 1
    rows = [line.split() for line in table if line.lstrip().startswith("[1, 1] ")]
    assert rows[0][:4] == ["[1,", "1]", "1", "2"] and rows[-1][-1] == "3e-07"


def test_a_result_without_a_name_has_a_graph(cli, tmp_path: Path):
    """That of the only backward pass: 2 * 3 + 1 by hand."""
    (tmp_path / "unnamed.py").write_text(
        "import torch\nw = torch.tensor([3.0, 1.0], requires_grad=True)\n"
        "far = torch.ones(1, requires_grad=True)\n(w * torch.tensor([2.0, 1.0])).sum().backward()\n"
    )
    path = str(tmp_path / "unnamed.py")
    out = cli("run", path, tty=True, COLUMNS="80", NO_COLOR="1").out
    assert "Graph   backward() <- grad_fn" in out and "<SumBackward0>" in out
    assert "not connected to what backward() began at" in " ".join(out.split())
    drawn = cli("graph", path)
    assert drawn.code == 0 and "(w * torch.tensor([2.0, 1.0])).sum() = 7" in drawn.out
    twice = tmp_path / "twice.py"
    twice.write_text((tmp_path / "unnamed.py").read_text() + "(w * w).sum().backward()\n")
    assert "Graph" not in cli("run", str(twice), tty=True, COLUMNS="80").out


def test_parts_of_a_call_are_told_apart(cli):
    program = (
        "import torch\nm = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())\n"
        "for i in range(2):\n    x = torch.sin(torch.ones(1, 2))\nm(x).sum().backward()\n"
    )
    out = cli("run", "-e", program, "--only", "graph", tty=True, COLUMNS="44", NO_COLOR="1").out
    labels = [line.strip(" │├└─") for line in out.splitlines()]
    assert labels[2:4] == ["m(x)", "addmm in m(x)"] and "t in m(x)" in labels

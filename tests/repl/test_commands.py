"""Commands: what each shows, what wrong words get, and that the table is what people read."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autodiff_cli.render.text import text_width
from autodiff_cli.repl import show
from autodiff_cli.repl.commands import inspect
from autodiff_cli.repl.commands.settings import SETTINGS
from autodiff_cli.repl.commands.table import COMMANDS, find

DEMO = ["A = [[1, 2], [3, 4]]", "B = [[1, 1], [1, 1]]", "loss = sum((A + B) * A)"]


@pytest.fixture
def demo(session: Any) -> Any:
    for line in DEMO:
        session(line)
    return session


def test_gradients_side_by_side(demo: Any) -> None:
    assert demo(":grad") == (
        "A.grad  [[3, 5],     B.grad  [[1, 2],\n"
        "         [7, 9]]              [3, 4]]\n"
    )  # fmt: skip


def test_gradients_below_each_other(make_session: Callable[..., Any]) -> None:
    session = make_session(width=lambda: 30)
    for line in DEMO:
        session(line)
    assert session(":grad").splitlines()[2].startswith("B.grad")


def test_values_below_their_name_have_its_room(make_session: Callable[..., Any]) -> None:
    session = make_session(width=lambda: 44)
    session(":set echo full")
    session("q = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]")
    for shown in (session(":list values"), session(":info q")):
        rows = [line for line in shown.splitlines() if line.startswith("  ")]
        assert rows[:2] == ["  [ 1,  2,  3,  4,  5,  6,  7,  8,  9, 10,", "   11, 12]"]


def test_names_of_wide_characters_take_their_room(session: Any) -> None:
    session("日本 = [[1, 2], [3, 4]]")
    session("日 = sum(日本 * 日本)")
    assert session(":grad") == f"日本.grad  [[2, 4],\n{' ' * 11} [6, 8]]\n"
    first, second, *_ = session(":derive 日 --steps").splitlines()
    assert text_width(first.partition("=")[0]) == text_width(second.partition("=")[0])


def test_gradients_of_and_with_respect_to(demo: Any) -> None:
    demo("other = sum(A)")
    assert demo(":grad other") == "A.grad  [[1, 1],\n         [1, 1]]\n"
    assert "A.grad" not in demo(":grad loss B")
    assert "E201" in demo.fails(":grad los")
    assert "E201" in demo.fails(":grad loss nothing")
    demo("y = A * 2")
    output = demo.fails(":grad y")
    assert "E401" in output
    assert ":jac y" in output


def test_gradients_of_what_lists_and_dicts_hold(session: Any) -> None:
    session("a = [tensor(2.0, requires_grad=True)]\nd = {'w': tensor(5.0, requires_grad=True)}")
    session("loss = a[0] * d['w']")
    assert session(":grad") == "a[0].grad  5     d['w'].grad  2\n"
    assert session(":grad loss d.w") == "d['w'].grad  2\n"


def test_gradients_change_nothing(demo: Any) -> None:
    demo("seen = []")
    demo("h = A.register_hook(lambda g: seen.append(1))")
    before = demo.state()
    demo(":grad")
    demo(":grad")
    assert demo.state() == before
    demo("loss.backward()")
    assert demo(":grad").startswith("A.grad")


def test_gradients_of_an_empty_session(session: Any) -> None:
    assert "E402" in session.fails(":grad")
    session("tensor(1.0, requires_grad=True) * 2")
    assert "input that `the last expression` depends on" in session.fails(":grad")
    session("x = const([1.0])")
    session("loss = sum(x)")
    assert "E402" in session.fails(":grad")


def test_large_gradients_are_summed_up(session: Any) -> None:
    session("x = ones(20, 20, requires_grad=True)")
    session("loss = sum(x * x)")
    output = session(":grad")
    assert "(20, 20)  norm 40" in output
    assert "..." in output


def test_list(demo: Any) -> None:
    demo("n = 3")
    assert demo(":list").splitlines()[2:] == [
        "loss  ()      float64 <SumBackward0>  40",
        "n     ()      float64 leaf            3",
    ]
    assert len(demo(":list leaves").splitlines()) == 3
    assert demo(":list defs").splitlines()[:3] == DEMO
    assert "loss = 40" in demo(":list values")
    assert "leaves, values or defs" in demo.fails(":list nonsense")


def test_info(demo: Any) -> None:
    output = demo(":info A")
    assert "A  (2, 2) float64 leaf" in output
    assert "made by   A = [[1, 2], [3, 4]]" in output
    assert "used by   loss" in output
    assert "did you mean `loss`?" in demo.fails(":info los")
    assert "takes a name" in demo.fails(":info")


def test_jacobian_and_hessian(demo: Any) -> None:
    demo("y = A[0] * 2")
    output = demo(":jac y A")
    assert "d y / d A  (2,)x(2, 2)" in output
    assert "d2 loss / d A d B" in demo(":hess loss")
    assert "did you mean" in demo.fails(":jac los")


def test_explain_why_graph_derive(demo: Any) -> None:
    assert "g(A) = [[3, 5], [7, 9]]" in demo(":explain A")
    demo("C = [1.0]")
    assert "C.grad is None" in demo(":why C")
    assert "<session>:4:1" in demo(":why C.grad")
    assert "E201" in demo.fails(":why nothing")
    assert "<SumBackward0>" in demo(":graph")
    assert demo(":graph it.mmd") == "written: it.mmd\n"
    assert Path("it.mmd").read_text().startswith("flowchart")
    assert demo(":graph it.svg") == "written: it.svg\n"
    assert ".dot" in demo.fails(":graph it.gif")
    assert demo.fails(":graph missing/it.dot")
    assert "d loss / d A = 2 * A + B" in demo(":derive")
    demo("z = 1; h = 0.5\nfor i in range(500):\n    h = sin(h) * h\n\nq = h + z*z\n")
    partly = demo.fails(":derive q")
    assert "d q / d z = 2 * z" in partly and "error[E505]: d q / d h#1 is too long" in partly
    assert "W403" not in demo(":jac loss")


def test_tools_leave_the_session(demo: Any) -> None:
    demo("torch.manual_seed(1)")
    demo("r = rand(2)")
    before = demo.state()
    assert demo(":plot A.grad").startswith("A.grad  |g| / max   (2, 2)   max 9\n ░░▒▒\n ▓▓██\n")
    assert "it has: A, A.grad" in demo.fails(":plot Q")
    for command in (":explain", ":why A", ":graph", ":derive", ":check", ":jac", ":hess"):
        demo(command)
    assert demo.state() == before
    first = demo("rand(3)")
    demo(":undo")
    demo(":check")
    assert demo("rand(3)") == first


def test_what_was_printed_is_not_printed_again(demo: Any) -> None:
    assert demo("print('once')") == "once\n"
    for command in (":explain", ":why A", ":graph", ":derive", ":jac", ":hess", ":check", ":plot"):
        assert "once" not in demo(command)
    assert "print('once')" in demo(":list defs")


@pytest.mark.parametrize("command", [":grad", ":derive", ":explain", ":jac", ":hess"])
def test_all_commands_take_the_same_side(demo: Any, command: str) -> None:
    whole = demo(f"{command}")
    one = demo(f"{command} A")
    assert one != whole and "B.grad" not in one and "g(B)" not in one and "d B" not in one
    assert demo(f"{command} loss A") == one
    assert demo(f"{command} loss") == whole
    demo("other = sum(A)")
    assert demo(f"{command} other A") != one


def test_words_that_cannot_be_read(demo: Any) -> None:
    assert "cannot be read" in demo.fails(":jac 'loss")
    assert "no option" in demo.fails(":jac --nonsense")


def test_a_long_restoration_is_announced(demo: Any) -> None:
    demo("c = const([1.0])")
    demo("c += 1")
    demo.loop.session.entries[-1].spent = 3.0
    assert "putting the session back together, about 3.0 s" in demo(":undo")
    assert demo("c") == "[1]\n"


def test_check(demo: Any) -> None:
    assert "3 passed" in demo(":check")
    demo("d = sum(A * A.detach())")
    demo("loss = d")
    assert "session.expr" in demo.loop.feed(":check").output


def test_tools_need_statements(session: Any) -> None:
    for name in ("jac", "hess", "check", "graph", "explain"):
        assert "no statements yet" in session.fails(f":{name}")
    assert "takes a name" in session.fails(":why")


def test_time(demo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect, "ENOUGH", 0.02)
    assert "best of" in demo(":time A @ B")
    assert "with gradient" in demo(":time sum(A @ B)")
    for words in ("A", "2 * 3", "const([1.0]) * 2", "[A, B]"):
        assert "with gradient" not in demo(f":time {words}")
    demo("def f(x):\n  return x * 2\n\n")
    assert "best of" in demo(":time f(A)")
    demo("c = const([1.0])")
    before = demo.state()
    assert "undone" in demo(":time c.add_(1)")
    assert "undone" in demo(":time A.grad")
    assert demo.state() == before
    assert "takes an expression" in demo.fails(":time")
    assert "E102" in demo.fails(":time x = 3")
    assert "E201" in demo.fails(":time nothing + 1")


def test_help_lists_every_command(session: Any) -> None:
    output = session(":help")
    for name in COMMANDS:
        assert f":{name}" in output
    assert session(":help :undo").startswith(":undo [N]")
    assert session("undo?").startswith(":undo [N]")


def test_help_about_things(demo: Any) -> None:
    assert "softmax(" in demo("softmax?")
    assert "E301" in demo(":help E301")
    assert "(2, 2) float64 leaf" in demo("A?")
    assert "did you mean `loss`?" in demo.fails(":help los")
    assert demo.fails(":help xyzzy123")


def test_settings(session: Any) -> None:
    for name in SETTINGS:
        assert name in session(":set")
        assert name in session(f":set {name}")
    assert session(":set precision 3") == "precision 3\n"
    assert session("2 / 3") == "0.667\n"
    session(":set echo full")
    assert session("x = [1.0, 2.0]") == "x  (2,)\n  [1, 2]\n"
    session(":set echo none")
    assert session("x = [1.0, 2.0]") == ""
    assert "did you mean `precision`?" in session.fails(":set precison 3")
    assert "a whole number" in session.fails(":set precision many")
    assert "one of" in session.fails(":set nan maybe")
    assert "on or off" in session.fails(":set hint 3")
    assert "before the first statement" in session.fails(":set dtype float32")
    session(":reset")
    session(":set dtype float32")
    session("x = [1.0]")
    assert session("x.dtype") == "torch.float32\n"
    session(":undo")
    session("x = [1.0]")
    assert session("x.dtype") == "torch.float32\n"


def test_whole_numbers(session: Any) -> None:
    """Zeros before a number hide no number that is too large."""
    for word, now in (("17", 17), ("18", 17), (f"{0:020}18", 17), ("0", 17), ("3", 3)):
        session.tell(f":set precision {word}")
        assert session.loop.settings.precision == now
    for word in (f"{0:09}3000000", "1000001", "0", "-1", "²"):
        assert "takes a number of entries" in session.fails(f":undo {word}")
    session("x = 3")
    assert session(":undo 1") == "undone: x = 3\n"


def test_what_is_shown_in_short(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each length at its limit, and one more."""
    session(":set max-elements 4")
    assert session("const([1.0, 2, 3, 4])") == "[1, 2, 3, 4]\n"
    assert session("const([1.0, 2, 3, 4, 5])").startswith("(5,) float64\n")
    monkeypatch.setattr(show, "LONGEST", 5)
    assert session("'abc'") == "'abc'\n"
    assert session("'abcd'") == "'abcd ... (6 characters)\n"
    twelve = "; ".join(f"a{i} = {i}" for i in range(12))
    assert len(session(twelve).splitlines()) == 12
    assert session(f"{twelve}; a12 = 12").splitlines()[12:] == ["... and 1 more name (:list)"]


def test_gradients_of_a_python_session(session: Any) -> None:
    """Of leaves, of what keeps its gradient, and of nothing else; further imports say nothing."""
    assert "a Python session" in session("import torch")
    assert session("import numpy as np") == ""
    for line in ("x = torch.ones(2, requires_grad=True)", "h = x * 2", "h.retain_grad()",
                 "g = h * 3", "u = torch.ones(1, requires_grad=True)",
                 "(g * g).sum().backward()"):  # fmt: skip
        session(line)
    shown = session(":grad").split()
    assert shown == ["x.grad", "[72,", "72]", "h.grad", "[36,", "36]", "u.grad", "None"]


def test_names_of_the_banner(session: Any) -> None:
    assert session.loop.status_line() == "names: none yet"
    session("; ".join(f"{name} = 1" for name in "abcdef"))
    assert session.loop.status_line() == "names: a, b, c, d, e, f"
    session("g = 1")
    assert session.loop.status_line() == "names: a, b, c, d, e, f and 1 more"


def test_options_of_a_written_graph(demo: Any) -> None:
    demo(":graph a.txt")
    demo(":graph b.txt --values")
    assert "value" in Path("b.txt").read_text() and "value" not in Path("a.txt").read_text()


def test_prompt_setting(session: Any) -> None:
    session(":set prompt >")
    assert session.loop.settings.prompt == "> "
    session(":set prompt 'a b '")
    assert session.loop.settings.prompt == "a b "


def test_reset(demo: Any, make_session: Callable[..., Any]) -> None:
    assert "3 entries" in demo(":reset")
    assert demo.state() == {}
    assert "as it was before: names: A, B, loss" in demo(":undo")
    assert demo("loss") == "40\n"
    assert "undone: loss" in demo(":undo")
    assert "nothing to undo" in make_session().fails(":undo")


def test_reset_ends_a_snippet_of_pytorch(session: Any) -> None:
    session("import torch")
    session("x = torch.ones(2)")
    session(":reset")
    session("x = [1, 2]")
    assert session("x.requires_grad, x.dtype") == "(True, torch.float64)\n"


def test_what_an_editor_gave_can_be_undone(make_session: Callable[..., Any]) -> None:
    session = make_session(edit=lambda text: text.replace("3", "4"))
    session("x = 3")
    session(":edit")
    session("y = x * 2")
    assert session("y") == "8\n"
    session(":undo")
    session(":undo")
    assert session("x") == "3\n"
    session(":undo")
    assert session.state() == {}


@pytest.mark.parametrize("word", ["exit", "quit", "exit()", "quit()"])
def test_words_of_other_prompts(session: Any, word: str) -> None:
    assert session.loop.feed(word).status == "quit"


def test_help_is_a_word_until_it_is_a_name(session: Any) -> None:
    assert session("help") == session("help()") == session(":help")
    session("help = 3")
    assert session("help") == "3\n"


def test_a_loss_that_was_differentiated_is_timed(demo: Any) -> None:
    demo("loss.backward()")
    assert "with gradient" in demo(":time loss")
    assert demo(":grad") == demo(":grad loss")


def test_history(demo: Any) -> None:
    assert demo(":history 3").splitlines() == [*DEMO[1:], ":history 3"]


def test_unknown_commands(session: Any) -> None:
    assert "did you mean `:list`" in session.fails(":lsit")
    assert "`:help` lists" in session.fails(":xyzzy")
    assert "`:help` lists" in session.fails(":")
    assert find("hi").name == "history"
    assert find("q").name == "quit"
    assert session.loop.feed(":quit").status == "quit"


def test_documentation_has_every_command(project: Path) -> None:
    text = (project / "docs" / "repl.md").read_text("utf-8")
    for command in COMMANDS.values():
        assert f"`:{command.name}" in text
    for name in SETTINGS:
        assert f"`{name}`" in text


def test_edit(make_session: Callable[..., Any]) -> None:
    given: list[str] = []
    texts = ["x = 5\n", "x = 6 # better\ny = undefined\n", *["x = 7\ny = 1\n"] * 2, None]

    def change(text: str) -> str | None:
        given.append(text)
        return texts.pop(0)

    session = make_session(edit=change)
    session("x = 1  # first")
    assert "names: x" in session(":edit")
    assert session("x") == "5\n"
    assert "E201" in session.fails(":edit")
    assert session("x") == "5\n"
    assert "names: x, y" in session(":edit")
    assert given[0] == "x = 1  # first\n"
    assert given[2] == "x = 6 # better\ny = undefined\n"
    assert session(":edit") == "nothing is changed\n"
    assert "nothing is changed" in session.fails(":edit")
    assert session("x + y") == "8\n"


def test_edit_without_a_terminal(session: Any) -> None:
    assert "no terminal" in session.fails(":edit")


def test_what_is_no_tensor(session: Any) -> None:
    for line in ["A = [[1, 2], [3, 4]]", "xs = [A, 2, [3]]", "m = torch.sin",
                 "class K:\n  def __init__(self):\n    self.a = 1\n\n", "k = K()",
                 "c = torch.tensor([1.0, 3.0]) > 2",
                 "loss = sum(A * A)", "b = [1.0, 2.0]"]:  # fmt: skip
        session(line)
    assert [line.split(maxsplit=1) for line in session(":list").splitlines()] == [
        ["A", "(2, 2)  float64 leaf"],
        ["xs", "list of 3"],
        ["m", "the function `sin`"],
        ["K", "the class `K`"],
        ["k", "a K"],
        ["c", "(2,)    bool const"],
        ["loss", "()      float64 <SumBackward0>  30"],
        ["b", "(2,)    float64 leaf"],
    ]
    session("loss.backward()")
    assert session(":info xs").startswith("xs: a list\n[tensor([[1., 2.],\n")
    said = session(":info xs[0]").splitlines()
    assert said[0] == "xs[0]  (2, 2) float64 leaf"
    assert said[-3:] == ["  xs[0].grad  [[2, 4],", "               [6, 8]]",
                           "  made by   xs = [A, 2, [3]]"]  # fmt: skip
    assert session(":grad") == (
        "A.grad  [[2, 4],     xs[0].grad  [[2, 4],     b.grad  None\n"
        "         [6, 8]]                  [6, 8]]\n"
    )
    assert session(":grad b") == "b.grad  None\n"
    assert "there is no name `nothing`" in session.fails(":grad nothing")


def test_names_of_an_entry_and_warnings(session: Any) -> None:
    said = session("; ".join(f"n{i} = {i}" for i in range(15))).splitlines()
    assert said[-2:] == ["n11  11", "... and 3 more names (:list)"]
    session("A = [1.0, 2.0]")
    assert "warning[W402]: a copy of a tensor has no history" in session("B = torch.tensor(A)")


def test_plots_into_files(demo: Any) -> None:
    assert demo(":plot A it.svg") == "written: it.svg\n"
    assert Path("it.svg").read_text().startswith("<?xml")


def test_nothing_is_edited(make_session: Callable[..., Any]) -> None:
    session = make_session(edit=lambda text: text)
    session("x = 1")
    assert session(":edit") == "nothing is changed\n"


def test_what_cannot_be_used(session: Any, tmp_path: Path) -> None:
    with open("long.expr", "wb") as file:
        file.truncate((64 << 20) + 1)
    assert "is longer than 64 MiB" in session.fails(":load long.expr")
    assert "takes a short text" in session.fails(f":set prompt {'a' * 41}")
    assert session(f":set prompt {'a' * 40}") == f"prompt {'a' * 40}\n"
    session("x = 1")
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    os.rmdir(tmp_path / "gone")
    assert "error: cannot use: no such file or directory" in session.fails(":explain")
    assert session.loop.code == 4


@pytest.mark.parametrize(("tick", "runs"), [(0.3, 2), (0.05, 2), (0.021, 4), (0.0, 10_000)])
def test_how_often_something_is_timed(
    monkeypatch: pytest.MonkeyPatch, tick: float, runs: int
) -> None:
    """A fifth of a second of a clock that goes on by a tick whenever it is read."""
    read = count()
    clock = SimpleNamespace(perf_counter=lambda: tick * next(read))
    monkeypatch.setattr(inspect, "time", clock)
    best, found = inspect._best(lambda: None)
    assert (best, found) == (pytest.approx(tick), runs)


def test_a_session_that_begins_anew_is_no_python_session(session: Any) -> None:
    for line in ("import torch", ":set dtype", ":reset", ":set dtype", "x = 2"):
        session(line)
    assert session("x.requires_grad") == "True\n"


def test_a_name_says_more_than_that_it_was_the_last_value(session: Any) -> None:
    for line in ("tensor([1.0, 2.0], requires_grad=True)", "w = _", "loss = sum(w * w)"):
        session(line)
    assert session(":grad") == "w.grad  [2, 4]\n"
    assert session("_") == "[1, 2]\n"


@pytest.mark.parametrize("word", ["on", "off", "true", "FALSE", "yes"])
def test_words_of_switches(session: Any, word: str) -> None:
    session.tell(f":set hint {word}")
    session.tell(":set hint")

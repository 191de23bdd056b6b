"""`autodiff report`: the page is complete without a script, lets nothing in, and says what the
other commands say."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import webbrowser
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff_cli as ad
import autodiff_cli.render.report as package
from autodiff_cli.cli.main import main
from autodiff_cli.cli.streams import Environment
from autodiff_cli.errors import Diagnostic
from autodiff_cli.explain import build
from autodiff_cli.render.report import gather
from autodiff_cli.render.report import page as pages
from autodiff_cli.session import Options
from autodiff_cli.source import Source, Span

from .parsed import Element, parsed

DEMO = "A = [[1, 2], [3, 4]]\nB = [[5, 6], [7, 8]]\nloss = sum((A + B) * A)\n"
ATTACK = (
    "# </script><script>alert(1)</script> <img src=x onerror=alert(1)> &amp; \"'\n"
    "x = [1.5, -2]\n"
    "print('</pre><script>alert(2)</script>')\n"
    "loss = sum(x * x)  # ]]> --> </title>\n"
    "assert loss < 1, '</code><b onclick=alert(3)>'\n"
)
LOOP = """\
import torch
w = torch.tensor([0.5, -1.0], requires_grad=True)
x = torch.tensor([1.0, 2.0])
for step in range(30):
    x = torch.tanh(x * w) + x
loss = (x * x).sum()
loss.backward()
"""
FOLDER = Path(package.__file__ or "").parent


def said(*words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    out, err = io.StringIO(), io.StringIO()
    code = main([*words], Environment(None, out, err, {}))
    return code, out.getvalue(), err.getvalue()


@cache
def report(program: str, *words: str, code: int = 0) -> str:
    """The page of a program."""
    found, page, _ = said("report", "-e", program.rstrip("\n"), "-o", "-", *words)
    assert found == code
    return page


def document(command: str, program: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(said(command, "-e", program, "--format", "json")[1])
    return data


def array(element: Element) -> np.ndarray:
    """The numbers of a value, as they are shown."""
    rows = [[cell.text for cell in row.all("td")] for row in element.all("tr")]
    numbers = rows or [element.one("span", _class="number").text]
    return _numbers(numbers if rows else numbers[0])


def _numbers(texts: Any) -> np.ndarray:
    if isinstance(texts, str):
        return np.array(float(texts.replace("\N{MINUS SIGN}", "-")))
    return np.array([_numbers(text) for text in texts])


def rows(step: Element, kind: str) -> list[Element]:
    return step.all("div", _class=kind)


# -- a page that lets nothing in ------------------------------------------------------------------


def hashes(elements: list[Element]) -> set[str]:
    digests = [hashlib.sha256(element.text.encode()).digest() for element in elements]
    return {f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests}


def test_policy_names_what_is_there_and_nothing_else() -> None:
    page = parsed(report(DEMO))
    (meta,) = [m for m in page.all("meta") if "http-equiv" in m.attributes]
    assert meta.attributes["http-equiv"] == "Content-Security-Policy"
    policy = {
        part.split()[0]: set(part.split()[1:]) for part in meta.attributes["content"].split(";")
    }
    scripts = [s for s in page.all("script") if s.attributes.get("type") != "application/json"]
    assert len(scripts) == 1
    assert policy == {
        "default-src": {"'none'"},
        "style-src": hashes(page.all("style")),
        "script-src": hashes(scripts),
        "base-uri": {"'none'"},
        "form-action": {"'none'"},
    }
    # The policy stands before everything that it is about.
    head = page.one("head")
    kinds = [child.tag for child in head.children if isinstance(child, Element)]
    assert kinds.index("meta") < kinds.index("style")
    assert head.children.index(meta) < head.children.index(head.one("title"))


@pytest.mark.parametrize(("program", "code"), [(DEMO, 0), (ATTACK, 1), (LOOP, 0), ("x = [", 3)])
def test_no_address_no_style_no_handler(program: str, code: int) -> None:
    whole = report(program, code=code)
    page = parsed(whole)
    for element in page.all():
        for name, value in element.attributes.items():
            assert not name.startswith("on") and name != "style", (element.tag, name)
            if name in ("href", "src", "srcset", "data", "action", "poster", "xlink:href"):
                assert value.startswith("#"), (element.tag, value)
    assert not re.search(r"https?:|@import|url\(|//[a-z]+\.", whole)
    ids = [e.attributes["id"] for e in page.all() if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    for element in page.all():
        named = element.attributes.get("aria-labelledby", "").split()
        assert set(named) <= set(ids)


def test_texts_of_a_program_stay_texts() -> None:
    page = parsed(report(ATTACK, code=1))
    assert len(page.all("script")) == 1 and not page.all("img")
    assert page.one("section", _class="source").one("pre", _class="text").text == ATTACK
    assert "alert(2)" in page.one("section", _class="output").text
    assert "</code><b onclick=alert(3)>" in page.one("section", _class="messages").text


def test_names_of_files_stay_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = "<b>&\"'.expr"
    Path(name).write_text(DEMO)
    code, text, _ = said("report", name, "-o", "-", "--title", "</title><b>")
    page = parsed(text)
    assert code == 0 and page.one("h1").text == "</title><b>" and page.one("h2").text == name


def test_the_same_program_gives_the_same_bytes(tmp_path: Path) -> None:
    """In another process, where sets have another order."""
    words = [sys.executable, "-m", "autodiff_cli", "report", "-e", DEMO.rstrip(), "-o", "a.html"]
    env = {**os.environ, "PYTHONHASHSEED": "1"}
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "a.html").read_text("utf-8")
    assert page == report(DEMO)
    assert len(page.encode()) < 150_000


def test_a_stamp_is_only_there_when_it_is_wanted() -> None:
    year = re.compile(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC")
    assert not year.search(report(DEMO))
    assert year.search(parsed(report(DEMO, "--stamp")).one("footer").text)


# -- everything is there without a script ---------------------------------------------------------


def test_every_step_is_there_with_the_numbers_of_the_explanation() -> None:
    page = parsed(report(DEMO, "-p", "17"))
    found = document("explain", DEMO)
    for forward in found["forward"]:
        step = page.one("section", id=f"f{forward['number']}")
        assert step.one("h4").text == f"{forward['name']} = {forward['expression']}"
        np.testing.assert_array_equal(array(step), forward["value"])
    for backward in found["steps"]:
        step = page.one("section", id=f"b{backward['number']}")
        rule = step.one("p", _class="rule")
        assert rule.text == f"{rule.one('code').text}: {backward['rule']}"
        for row, incoming in zip(rows(step, "arrives"), backward["incoming"], strict=True):
            np.testing.assert_array_equal(array(row), incoming["value"])
        for row, given in zip(rows(step, "gives"), backward["contributions"], strict=True):
            assert given["formula"] in row.text
            np.testing.assert_array_equal(array(row), given["value"])
            if given["paths"] > 1:
                assert f"path {given['path']} of {given['paths']}" in row.text
    total = page.one("section", id="total")
    for row, name in zip(rows(total, "row"), found["totals"], strict=True):
        assert name in row.text
        np.testing.assert_array_equal(array(row), found["totals"][name]["value"])


def test_gradients_are_those_of_the_run() -> None:
    """The sum of the paths at a shared leaf is checked by hand: 2A + B."""
    page = parsed(report(DEMO, "-p", "17"))
    tensors = document("run", DEMO)["tensors"]
    body = page.one("section", _class="gradients").one("tbody")
    shown = [row for row in body.children if isinstance(row, Element) and row.all("th")]
    for row, name in zip(shown, ("A", "B"), strict=True):
        cells = [cell for cell in row.children if isinstance(cell, Element)]
        np.testing.assert_array_equal(array(cells[1]), tensors[name]["value"])
        np.testing.assert_array_equal(array(cells[2]), tensors[name]["grad"])
    (adding,) = rows(page.one("section", id="b1"), "adds")
    before, added, together = map(array, adding.all("table"))
    np.testing.assert_array_equal(before, [[6, 8], [10, 12]])
    np.testing.assert_array_equal(added, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(together, tensors["A"]["grad"])
    assert [cell.text for cell in body.all("code")] == ["A", "2 * A + B", "B", "A"]


def test_formulas_come_with_what_their_names_mean() -> None:
    program = "x = [0.1, 0.2]\nloss = sum(exp(sin(x * x)) * cos(exp(sin(x * x)) * x))\n"
    (found,) = document("derive", program)["derivatives"].values()
    assert found["lets"]
    cell = parsed(report(program)).one("section", _class="gradients").all("td")[-1]
    texts = [found["text"], *(f"{name} = {text}" for name, text in found["lets"])]
    assert [code.text for code in cell.all("code")] == texts
    assert not cell.all("details")


def test_long_formulas_are_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    """From one character more on than may be shown at once."""
    whole = parsed(report(DEMO)).one("section", _class="gradients").all("td")
    size = len("= <code>2 * A + B</code>")
    assert "= 2 * A + B" in [cell.text for cell in whole]
    for most in (size, size - 1):
        monkeypatch.setattr(pages, "LONG", most)
        page = parsed(report.__wrapped__(DEMO))
        folded = page.one("section", _class="gradients").all("details")
        assert [fold.one("summary").text for fold in folded] == ["as a formula"] * (most < size)


def test_large_jacobians_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of `h` has six entries."""
    for most in (6, 5):
        monkeypatch.setattr(gather, "MOST_ENTRIES", most)
        program = "x = [1, 2, 3]\nh = const([[1, 2, 1], [0, 1, 4]]) @ x\nloss = sum(h)\n"
        page = parsed(report.__wrapped__(program))
        assert len(page.all("section", _class="jacobian")) == (most == 6)


def test_how_often_a_statement_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that is walked twice, in a program that is told by its statements."""
    monkeypatch.setattr(build, "MOST_STEPS", 4)
    text = "x = 0.5\nw = 1.5\nfor i in range(2):\n    x = tanh(x * w)\n"
    page = parsed(report(f"{text}y = sin(sin(x))\nloss = y * 2\n"))
    assert ", 2 times; the last" in page.one("section", id="f1").text
    last = max(int(step.attributes["id"][1:]) for step in page.all("section", _class="backward"))
    assert page.one("section", id="b1").one("p", _class="rule").text.startswith("2 times: ")
    assert "2 times" not in page.one("section", id=f"b{last}").text
    assert "2 times" in page.one("section", _class="graph").text.replace("\xa0", " ")


def test_of_several_backward_passes_the_last_is_shown() -> None:
    program = "x = [1.0, 2.0]\ny = sum(x * x)\ny.backward()\nz = sum(x ** 3)\nz.backward()\n"
    facts = parsed(report(program)).one("p", _class="facts")
    assert [found.text for found in facts.all("span")][:2] == ["z = 9", "backward 2 of 2"]


def test_steps_tell_the_script_their_nodes_and_edges() -> None:
    page = parsed(report(DEMO))
    (data,) = [s for s in page.all("script") if s.attributes.get("type") == "application/json"]
    stops = json.loads(data.text)
    ids = [stop["id"] for stop in stops]
    assert ids == ["start", "f1", "f2", "f3", "seed", "b3", "b2", "b1", "total"]
    steps = page.all("section", _class="step")
    assert [step.attributes["id"] for step in steps] == ids
    # A and B are the first two nodes; A + B reads both, the product A again.
    edges = {stop["id"]: stop["edges"] for stop in stops}
    assert edges["f1"] == edges["b1"] == [["n1", "n3"], ["n2", "n3"]]
    assert sorted(edges["b2"]) == [["n1", "n4"], ["n3", "n4"]]
    assert edges["f3"] == [["n4", "n5"]]
    marks = {m.attributes["data-at"]: m.text for m in page.all("mark")}
    assert marks == {"n3": "A + B", "n4": "(A + B) * A", "n5": "sum((A + B) * A)"}


def test_the_graph_has_the_nodes_and_edges_of_the_steps() -> None:
    page = parsed(report(DEMO))
    (data,) = [s for s in page.all("script") if s.attributes.get("type") == "application/json"]
    stops = json.loads(data.text)
    graph = page.one("section", _class="graph").one("svg")
    nodes = {g.attributes["data-node"] for g in graph.all("g", _class="node")}
    assert nodes == {"n1", "n2"} | {stop["node"] for stop in stops if stop["node"]}
    drawn = [
        [g.attributes["data-from"], g.attributes["data-to"]] for g in graph.all("g", _class="edge")
    ]
    assert sorted(drawn) == sorted(e for s in stops if s["phase"] == "backward" for e in s["edges"])


def test_a_loop_has_a_step_for_each_statement() -> None:
    page = parsed(report(LOOP))
    found = document("explain", LOOP)
    assert found["grouped"]
    for step in found["steps"]:
        assert page.one("section", id=f"b{step['number']}")
    assert "30 times" in page.one("section", id="f1").text


def test_marks_of_the_program_are_one_inside_of_the_other() -> None:
    text = "x = 3\nloss = sin(x * x) + exp(-(x * x))  # x\n"
    code = parsed(report(text)).one("pre", _class="text")
    assert code.text == text
    assert code.one("mark", **{"data-at": "n2"}).text == "x * x"
    names = [s.attributes["title"] for s in code.all("span", _class="name") if s.text == "x"]
    assert len(names) == 5 and all(t.startswith("x () float64: 3\ngradient: ") for t in names)


def test_of_marks_that_cross_the_first_is_kept() -> None:
    """One may begin where another ends, or be inside of it; what is empty marks nothing."""
    a, b, c, d = (0, 4, "a"), (4, 9, "b"), (5, 9, "c"), (8, 12, "d")
    assert pages._nested([d, c, b, a]) == [a, b, c]
    source = Source("x = 2; loss = x", "p.expr")
    found = gather.gathered(source, Options())
    bare = pages.article(found, 1, 4)
    found.said.append(Diagnostic("E101", "nothing here", Span(source, 4, 4)))
    assert pages.article(found, 1, 4).count("<mark") == bare.count("<mark")
    found.said.append(Diagnostic("E101", "a digit", Span(source, 4, 5)))
    assert pages.article(found, 1, 4).count("<mark") == bare.count("<mark") + 1


def test_large_tensors_are_pictures_of_bounded_size() -> None:
    leaf = "W = linspace(-1, 1, 40000, requires_grad=True)\n"
    text = report(f"{leaf}loss = sum(tanh(W.reshape(200, 200)) ** 2)\n")
    page = parsed(text)
    assert len(text) < 300_000
    figure = page.one("section", id="f2").one("figure")
    assert "(200, 200)" in figure.text and "means of 9×5" in figure.text
    classes = {path.attributes["class"] for path in figure.all("path")}
    assert {"m6", "p6"} <= classes
    assert "log10|g|" in page.one("section", _class="gradients").text


def test_numbers_that_are_none_and_dust() -> None:
    page = parsed(report("x = [1e-17, 1, -1]\ny = log(x - 1)\nloss = sum(x)\n", "--nan=ignore"))
    cells = page.one("section", _class="gradients").all("td")
    dust = [cell for cell in cells if cell.attributes.get("class") == "dust"]
    assert [(cell.text, cell.attributes["title"]) for cell in dust] == [("≈ 0", "1e-17")]
    none = parsed(report("x = const([nan, -inf, 1])\n"))
    marked = none.all("td", _class="bad")
    assert [cell.text for cell in marked] == ["nan", "\N{MINUS SIGN}inf"]


def test_the_jacobian_of_a_named_value() -> None:
    """y = W x: its derivative by x is W."""
    text = "W = const([[1, 2], [3, -4]])\nx = [1, 2]\ny = W @ x\nloss = sum(y * y)\n"
    jacobian = parsed(report(text)).one("section", _class="jacobian")
    assert "d y / d x" in jacobian.one("h4").text
    np.testing.assert_array_equal(array(jacobian), [[1, 2], [3, -4]])


# -- what goes wrong ------------------------------------------------------------------------------


def test_a_wrong_program_is_shown_with_its_error() -> None:
    page = parsed(report("A = [[1, 2], [3]]\n", code=3))
    assert "error[E107]" in page.one("section", _class="messages").text
    assert page.one("mark", _class="error")
    assert not page.all("section", _class="step") and not page.all("button")


def test_a_program_without_gradients_shows_its_values() -> None:
    page = parsed(report("x = const([1, 2])\ny = x * 2\n"))
    assert "nothing to step through" in page.one("p", _class="facts").text
    values = page.one("section", _class="values")
    np.testing.assert_array_equal(array(values.all("table", _class="matrix")[1]), [[2, 4]])


def test_failed_checks_are_shown() -> None:
    page = parsed(report("x = 2  #=> 3\nloss = x * x\n"))
    assert "error[E603]" in page.one("section", _class="messages").text
    page = parsed(report("x = 2\nloss = x * x\nassert loss == 5\n", code=1))
    checks = page.one("section", _class="checks")
    assert [row.text for row in checks.all("tr", _class="failed")] == ["✗ failedassert[3]line 3"]
    assert "error[E601]" in page.one("section", _class="messages").text


@pytest.mark.parametrize(
    ("words", "there"), [((), True), (("-D", "x=3"), False), (("-e", "loss = loss * 2"), False)]
)
def test_a_snapshot_is_of_the_file_as_it_is(
    words: tuple[str, ...], there: bool, tmp_path: Path
) -> None:
    program = tmp_path / "a.expr"
    program.write_text("x = [1.0, 2.0]\nloss = sum(x ** 2)\n")
    assert said("check", str(program), "--snapshot")[0] == 0
    code, text, _ = said("report", str(program), *words, "-o", "-")
    items = [row.text for row in parsed(text).one("section", _class="checks").all("tr")]
    assert (code, any("snapshot" in item for item in items)) == (0, there) and items


def test_several_programs_and_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "demo.expr").write_text(DEMO)
    names = [str(tmp_path / name) for name in ("demo.expr", "none.expr", "demo.expr")]
    out = tmp_path / "page.html"
    code, _, err = said("report", *names, "-o", str(out))
    page = parsed(out.read_text("utf-8"))
    assert code == 2 and "none.expr" in err
    assert [a.text for a in page.one("nav").all("a")] == names
    assert [a.attributes["href"] for a in page.one("nav").all("a")] == ["#1", "#2", "#3"]
    assert page.one("h1").text == "3 programs"
    assert parsed(pages.page(names[:2], ["", ""])).one("h1").text == "2 programs"
    assert page.one("section", id="b2") and page.one("section", id="3-b2")
    ids = [e.attributes["id"] for e in page.all() if "id" in e.attributes]
    assert len(ids) == len(set(ids))


def test_open_shows_the_file_in_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(webbrowser, "open", shown.append)
    out = tmp_path / "a b.html"
    assert said("report", "-e", DEMO, "-o", str(out), "--open")[0] == 0
    assert shown == [out.resolve().as_uri()]
    assert said("report", "-e", DEMO, "-o", str(tmp_path / "no" / "a.html"), "--open")[0] == 2
    assert said("report", "-e", DEMO, "-o", "-", "--open")[0] == 2
    assert len(shown) == 1


def test_checks_that_could_not_run_as_the_program_did_are_left_out(tmp_path: Path) -> None:
    """Checks read nothing outside of the program's folder."""
    np.save(tmp_path / "x.npy", np.ones(2))
    text = f"x = tensor(load({str(tmp_path / 'x.npy')!r}), requires_grad=True)\nloss = sum(x * x)\n"
    page = parsed(report(text, "--allow-read", str(tmp_path)))
    assert page.one("section", id="b1") and not page.all("section", _class="checks")
    assert not page.all("section", _class="messages")


@pytest.mark.parametrize("limit", [("--max-steps", "50"), ("--max-memory", "1MiB")])
def test_checks_have_the_limits_of_the_program(limit: tuple[str, str]) -> None:
    text = "x = 2\nfor i in range(100):\n  x = x * 1\nloss = x * sum(ones(200000))\n"
    page = parsed(report(text, *limit, code=4))
    assert page.all("section", _class="messages") and not page.all("section", _class="checks")
    assert parsed(report(text)).one("section", _class="checks")


# -- colours --------------------------------------------------------------------------------------


def luminance(color: list[float]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: list[float], other: list[float]) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("at", [0, 1, 2], ids=["light", "dark", "print"])
def test_texts_can_be_read(at: int) -> None:
    """WCAG's 4.5 to 1 for every text on every ground that it stands on."""
    style = (FOLDER / "page.css").read_text("utf-8")
    block = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[at]
    colors = {
        name: [int(value[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        for name, value in re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)
    }
    code = ("ink", "soft", "keyword", "string", "digits")
    texts = (*code, "link", "forward", "backward", "bad")
    pairs = [(text, ground) for text in texts for ground in ("paper", "panel")]
    pairs += [(text, ground) for text in code for ground in ("forward-soft", "backward-soft")]
    pairs += [("bad", "bad-soft"), ("ink", "plus"), ("ink", "minus"), ("paper", "link")]
    weak = {
        pair: round(contrast(colors[pair[0]], colors[pair[1]]), 2)
        for pair in pairs
        if contrast(colors[pair[0]], colors[pair[1]]) < 4.5
    }
    assert not weak


# -- notebooks ------------------------------------------------------------------------------------


class Shell:
    """What IPython's shell is asked for by an extension."""

    def __init__(self) -> None:
        self.magics: dict[str, Any] = {}

    def register_magic_function(self, function: Any, magic_kind: str) -> None:
        self.magics[f"{magic_kind} {function.__name__}"] = function


def inner(html: str) -> Element:
    """The page inside of a frame."""
    frame = parsed(html).one("iframe")
    assert frame.attributes["sandbox"] == "allow-scripts"
    return parsed(frame.attributes["srcdoc"])


def test_the_magic_shows_the_page_of_a_cell(capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell()
    ad.load_ipython_extension(shell)  # type: ignore[attr-defined]  # made when it is asked for
    magic = shell.magics["cell autodiff"]
    page = inner(magic("--wrt A -p 3", DEMO)._repr_html_())
    assert len(rows(page.one("section", id="total"), "row")) == 1
    assert "error[E101]" in inner(magic("", "x = [")._repr_html_()).text
    assert magic("--wrong", DEMO) is None
    assert "--wrong" in capsys.readouterr().err


def test_results_of_the_library_show_themselves() -> None:
    found = ad.run("x = [1, 2]\nloss = sum(x * x)\nprint('printed')\n")
    page = inner(found._repr_html_())  # type: ignore[attr-defined]  # for notebooks
    assert page.one("section", _class="output").text.strip() == "Output\nprinted"
    values = page.one("section", _class="values").all("table", _class="matrix")
    np.testing.assert_array_equal(array(values[1]), [found["tensors"]["x"]["grad"]])

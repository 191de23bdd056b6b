"""The page in a real browser: every step by keys, nothing on the console, light, dark, narrow, on
paper and without scripts. Skipped where there is no Chromium with its driver, or no selenium.

`REPORT_SHOTS=FOLDER` keeps the screenshots, to be looked at.
"""

from __future__ import annotations

import base64
import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..later import Later
from .test_page import DEMO, LOOP, Shell, ad, said

webdriver, by = Later("selenium.webdriver"), Later("selenium.webdriver.common.by")

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="there is no chromium with its chromedriver"
)
IDS = ["start", "f1", "f2", "f3", "seed", "b3", "b2", "b1", "total"]
SEEN = """
    const steps = [...document.querySelectorAll('.step')];
    return steps.filter(e => e.checkVisibility()).map(e => e.id);
"""
COLORS = """
    const wanted = getComputedStyle(document.querySelector(arguments[0])).color;
    const parts = ['[data-node=n1] rect', '[data-from=n1][data-to=n4] .line'];
    const strokes = parts.map(p => getComputedStyle(document.querySelector('.graph ' + p)).stroke);
    return strokes.map(stroke => stroke === wanted);
"""
CUT = """
    const panes = [...document.querySelectorAll('.panes > section, .code, pre')];
    return panes.filter(e => e.scrollHeight > e.clientHeight + 2).map(e => e.className);
"""
HIDDEN = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for word in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{word}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield browser
    browser.quit()


@pytest.fixture
def browser(driver: Any) -> Iterator[Any]:
    """A browser that was told nothing yet; whatever a test does, the console stays empty."""
    size(driver, 1440, 900)
    look(driver)
    driver.get_log("browser")
    yield driver
    assert driver.get_log("browser") == []


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page of three programs: one with a shared leaf, a loop, an error."""
    folder = tmp_path_factory.mktemp("page")
    for name, text in (("demo.expr", DEMO), ("loop.py", LOOP), ("bad.expr", "x = [\n")):
        (folder / name).write_text(text)
    names = [str(folder / name) for name in ("demo.expr", "loop.py", "bad.expr")]
    out = folder / "page.html"
    assert said("report", *names, "-o", str(out))[0] == 3
    return out.as_uri()


def size(driver: Any, width: int, height: int) -> None:
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )


def look(driver: Any, scheme: str = "light", media: str = "") -> None:
    scheme_feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"media": media, "features": [scheme_feature]}
    )


def opened(driver: Any, address: str) -> Any:
    """The page, loaded anew, whatever it showed before."""
    driver.get("about:blank")
    driver.get(address)
    return driver.find_element(by.By.TAG_NAME, "body")


def state(driver: Any) -> tuple[Any, ...]:
    """What is seen: the steps, the address, the node and the place that are marked."""
    return tuple(driver.execute_script(f"""
        const seen = (() => {{ {SEEN} }})();
        const said = (e) => e.dataset.node || e.textContent;
        const now = (s) => [...document.querySelectorAll(s)].map(said);
        return [seen, location.hash, now('.file.on .node.now'),
                now('mark.forward, mark.backward, mark.seed')];
    """))  # fmt: skip


def test_every_step_is_reached_by_keys(browser: Any, page: str) -> None:
    body = opened(browser, page)
    assert state(browser)[:2] == (["start"], "")
    sources = {"1": "A + B", "2": "(A + B) * A", "3": "sum((A + B) * A)"}
    for name in IDS[1:]:
        body.send_keys(webdriver.Keys.ARROW_RIGHT)
        number = "3" if name == "seed" else name[1:]
        seen, address, nodes, marks = state(browser)
        assert (seen, address) == ([name], f"#{name}")
        if name != "total":
            assert nodes == [f"n{int(number) + 2}"] and marks == [sources[number]]
    body.send_keys(webdriver.Keys.ARROW_RIGHT)  # there is no further step
    assert state(browser)[0] == ["total"]
    for name in IDS[-2:-5:-1]:
        body.send_keys(webdriver.Keys.ARROW_LEFT)
        assert state(browser)[:2] == ([name], f"#{name}")
    body.send_keys(webdriver.Keys.END)
    assert state(browser)[0] == ["total"]
    body.send_keys(webdriver.Keys.HOME)
    assert state(browser)[0] == ["start"]


def test_paths_to_a_shared_leaf_arrive_one_by_one(browser: Any, page: str) -> None:
    """A has a part of its gradient after the product, all of it after the sum."""
    classes = "return document.querySelector('.graph [data-node=n1]').classList.value.split(' ')"
    flowing = "return document.querySelectorAll('.file.on .edge.got').length"
    shown = "return getComputedStyle(document.querySelector('[data-node=n1] .grad')).opacity"
    for name, has, edges, seen in (
        ("f3", "seen", 0, "0"), ("b2", "part", 3, "0"), ("b1", "got", 5, "1"),
    ):  # fmt: skip
        opened(browser, f"{page}#{name}")
        assert has in browser.execute_script(classes)
        assert browser.execute_script(flowing) == edges
        assert browser.execute_script(shown) == seen
        phase = ".forward .phase" if has == "seen" else ".backward .phase"
        assert browser.execute_script(COLORS, phase) == [True, True]


def test_buttons_the_slider_and_clicks_on_the_graph(browser: Any, page: str) -> None:
    body = opened(browser, f"{page}#b2")
    assert state(browser)[0] == ["b2"]
    bar = browser.find_element(by.By.CSS_SELECTOR, ".file.on .bar")
    for word, there in (("next", "b1"), ("back", "b2"), ("first", "start"), ("last", "total")):
        bar.find_element(by.By.CSS_SELECTOR, f"[data-go={word}]").click()
        assert state(browser)[0] == [there]
    bar.find_element(by.By.TAG_NAME, "input").send_keys(webdriver.Keys.ARROW_LEFT)
    assert state(browser)[0] == ["b1"]
    browser.find_element(by.By.CSS_SELECTOR, ".file.on .graph [data-node=n4]").click()
    assert state(browser)[0] == ["b2"]
    assert bar.find_element(by.By.TAG_NAME, "output").text == "7 of 9: Backward 2 of 3"
    body.send_keys(webdriver.Keys.SPACE)
    play = bar.find_element(by.By.CSS_SELECTOR, "[data-go=play]")
    assert play.get_attribute("aria-label") == "pause"
    body.send_keys(webdriver.Keys.SPACE)
    assert play.get_attribute("aria-label") == "play"


def test_programs_are_shown_one_at_a_time(browser: Any, page: str) -> None:
    body = opened(browser, page)
    browser.find_element(by.By.CSS_SELECTOR, "nav a[href='#2']").click()
    assert state(browser)[0] == ["2-start"]
    body.send_keys(webdriver.Keys.END)
    assert state(browser)[:2] == (["2-total"], "#2-total")
    browser.find_element(by.By.CSS_SELECTOR, "nav a[href='#3']").click()
    body.send_keys(webdriver.Keys.ARROW_RIGHT)  # nothing to step through
    assert state(browser)[0] == []
    shown = "return [...document.querySelectorAll('.file')].map(e => e.checkVisibility())"
    assert browser.execute_script(shown) == [False, False, True]


def test_without_scripts_and_on_paper_everything_is_there(browser: Any, page: str) -> None:
    opened(browser, page)
    look(browser, media="print")
    everything = browser.execute_script(SEEN)
    assert set(IDS) < set(everything) and "2-total" in everything
    assert browser.execute_script(CUT) == []
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(printed["data"]).startswith(b"%PDF")
    look(browser)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        opened(browser, page)
        steps = browser.find_elements(by.By.CSS_SELECTOR, ".step")
        assert [step.get_attribute("id") for step in steps] == everything
        assert all(step.is_displayed() for step in steps)
        assert not browser.find_element(by.By.CSS_SELECTOR, ".bar").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_the_policy_holds(driver: Any, page: str) -> None:
    """A script, a style and an image that are added later do nothing but complain."""
    opened(driver, page)
    driver.get_log("browser")
    driver.execute_script("""
        const add = (tag, text) => {
          const e = document.createElement(tag); e.textContent = text; document.body.append(e);
        };
        add('script', 'window.caught = 1'); add('style', 'body { display: none }');
        const image = new Image(); image.src = 'data:,'; document.body.append(image);
    """)
    assert driver.execute_script("return window.caught") is None
    assert driver.find_element(by.By.TAG_NAME, "body").is_displayed()
    complaints = [entry["message"] for entry in driver.get_log("browser")]
    assert len(complaints) == 3 and all("Content Security Policy" in m for m in complaints)


@pytest.mark.parametrize(("width", "scheme"), [(1440, "dark"), (900, "light"), (390, "dark")])
def test_it_fits_and_is_painted(browser: Any, page: str, width: int, scheme: str) -> None:
    """No width needs scrolling sideways; the screenshot has its size and is not one colour."""
    look(browser, scheme)
    size(browser, width, 900)
    opened(browser, f"{page}#b1")
    assert browser.execute_script(HIDDEN) == 0
    picture = browser.get_screenshot_as_png()
    assert struct.unpack(">II", picture[16:24]) == (width, 900)
    assert len(picture) > 20_000
    ground = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    assert (sum(browser.execute_script(ground)) > 382) == (scheme == "light")
    if os.environ.get("REPORT_SHOTS"):
        name = f"{width}-{scheme}.png"
        (Path(os.environ["REPORT_SHOTS"]) / name).write_bytes(picture)


def test_large_graphs_are_legible_where_the_step_is(browser: Any, tmp_path: Path) -> None:
    text = "; ".join(f"w{i} = [1, 2]" for i in range(12))
    text += "\nloss = sum(" + " + ".join(f"sin(w{i})**2" for i in range(12)) + ")"
    out = tmp_path / "wide.html"
    assert said("report", "-e", text, "-o", str(out))[0] == 0
    for width, step in ((1440, "b1"), (390, "b9")):
        size(browser, width, 900)
        opened(browser, f"{out.as_uri()}#{step}")
        letters, inside = browser.execute_script("""
          const pane = document.querySelector("section.graph").getBoundingClientRect();
          const now = document.querySelector(".graph .node.now");
          const at = now.getBoundingClientRect();
          return [now.querySelector("text").getScreenCTM().a * 12,
            at.left >= pane.left && at.right <= pane.right &&
            at.top >= pane.top && at.bottom <= pane.bottom];""")
        assert (letters >= 11, inside) == (True, True)


def test_the_line_of_a_step_is_seen_beside_its_number(browser: Any, tmp_path: Path) -> None:
    lines = ["# nothing"] * 60
    text = "x = [1, 2]\n" + "\n".join(lines) + "\nloss = sum(x * x)\n" + "\n".join(lines)
    out = tmp_path / "long.html"
    assert said("report", "-e", text, "-o", str(out))[0] == 0
    for width in (1440, 390):
        size(browser, width, 900)
        opened(browser, f"{out.as_uri()}#b1")
        seen = browser.execute_script("""
          const pane = document.querySelector(".code").getBoundingClientRect();
          const mark = document.querySelector("mark.backward").getBoundingClientRect();
          const text = document.querySelector("pre.text").getBoundingClientRect();
          const gutter = document.querySelector("pre.gutter").getBoundingClientRect();
          return [mark.top >= pane.top && mark.bottom <= pane.bottom, text.top - gutter.top];""")
        assert seen == [True, 0]


def test_in_a_notebook(browser: Any, tmp_path: Path) -> None:
    """Two frames in one document, each stepped by its own keys."""
    shell = Shell()
    ad.load_ipython_extension(shell)  # type: ignore[attr-defined]  # made when it is asked for
    frame = shell.magics["cell autodiff"]("", DEMO)._repr_html_()
    (tmp_path / "cells.html").write_text(f"<!doctype html><title>n</title>{frame}{frame}")
    opened(browser, (tmp_path / "cells.html").as_uri())
    browser.switch_to.frame(1)
    browser.find_element(by.By.TAG_NAME, "h1").click()
    browser.find_element(by.By.TAG_NAME, "body").send_keys(webdriver.Keys.ARROW_RIGHT)
    assert browser.execute_script(SEEN) == ["f1"]
    browser.switch_to.default_content()
    browser.switch_to.frame(0)
    assert browser.execute_script(SEEN) == ["start"]
    browser.switch_to.default_content()


def test_numbers_and_formulas_have_room(browser: Any, tmp_path: Path) -> None:
    """Long rows of numbers do not run into each other, formulas are not squeezed into a column, and
    on paper nothing is cut off or folded away."""
    program = tmp_path / "wide.expr"
    program.write_text(
        "import torch\n"
        "first_weights = torch.linspace(-0.011, 0.0009622, 12).reshape(3, 4).requires_grad_()\n"
        "second_weights = torch.linspace(-0.5, 0.5, 12).reshape(4, 3).requires_grad_()\n"
        "x = torch.tensor([[1.0, 2.0, 3.0]])\n"
        "hidden = torch.sin(x @ first_weights) @ second_weights\n"
        "loss = torch.sum(torch.exp(hidden) ** 2 * torch.tanh(x)) * 1e-3\nloss.backward()\n"
    )
    out = tmp_path / "wide.html"
    assert said("report", str(program), "-o", str(out))[0] == 0
    for width, media in ((1440, ""), (390, ""), (720, "print")):
        size(browser, width, 900)
        look(browser, media=media)
        opened(browser, out.as_uri())
        touching, folded, squeezed, cut = browser.execute_script("""
            const all = s => [...document.querySelectorAll(s)];
            const room = document.querySelector('.gradients').clientWidth;
            return [
              all('.matrix td').filter(e => e.scrollWidth > e.clientWidth + 1).length,
              all('.gradients details code').filter(e => !e.checkVisibility()).length,
              all('.formula').filter(e => e.clientWidth < 0.6 * room).length,
              all('.gradients .scroll').filter(e => e.scrollWidth > e.clientWidth + 1).length,
            ]""")
        assert (touching, squeezed, cut) == (0, 0, 0)
        assert media == "" or folded == 0
    look(browser)


def test_keys_are_told_where_there_are_steps(browser: Any, page: str, tmp_path: Path) -> None:
    opened(browser, page)
    assert "next step" in browser.find_element(by.By.TAG_NAME, "footer").text
    look(browser, media="print")
    assert "Keys" not in browser.find_element(by.By.TAG_NAME, "footer").text
    look(browser)
    out = tmp_path / "bad.html"
    assert said("report", "-e", "x = [", "-o", str(out))[0] == 3
    opened(browser, out.as_uri())
    assert "Keys" not in browser.find_element(by.By.TAG_NAME, "footer").text

"""The wheel is complete: it runs from an empty environment, in another folder, as a user's does."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from autodiff_cli.version import __version__

SAMPLE = """\
A = [[1, 2], [3, 4]]
B = [[5, 6], [7, 8]]
loss = sum((A + B) * A)
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Standard output of a command that must succeed, away from this process's own paths."""
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = "import sys, hatchling.build as b; b.build_wheel(sys.argv[1])"
    run(sys.executable, "-c", build, folder, cwd=project)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts folder of an environment that holds the wheel; the dependencies are this
    environment's, reached by a path file behind its own packages."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    pip = [sys.executable, "-m", "pip", "--python", scripts / "python"]
    run(*pip, "install", "--quiet", "--no-compile", "--no-deps", "--no-index", wheel, cwd=folder)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(run(scripts / "python", "-c", ask, cwd=folder).strip())
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return scripts


def test_contents(project: Path, wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert wheel.name == f"autodiff_cli-{__version__}-py3-none-any.whl"
    assert "autodiff_cli/grammar/expr.lark" in names
    package = project / "autodiff_cli"
    expected = {
        path.relative_to(project).as_posix()
        for path in package.rglob("*")
        if path.is_file()
        and not any(
            part.startswith((".", "__pycache__")) for part in path.relative_to(package).parts
        )
    }
    assert expected <= names
    for page in (project / "docs").glob("*.md"):
        assert f"autodiff_cli/docs/{page.name}" in names
    assert any(re.match(r"autodiff_cli/language/syntax/tables\.\w+$", name) for name in names)
    outside = {name for name in names if not name.startswith("autodiff_cli")}
    assert outside == set()


def test_metadata(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    folder = f"autodiff_cli-{__version__}.dist-info"
    metadata = archive.read(f"{folder}/METADATA").decode()
    runtime = re.findall(r"^Requires-Dist: ([\w.-]+)[^;\n]*$", metadata, re.MULTILINE)
    assert sorted(name.replace("_", "-") for name in runtime) == [
        "click", "lark", "numpy", "prompt-toolkit", "pygments", "rich", "scipy", "threadpoolctl",
    ]  # fmt: skip
    assert "Requires-Python: >=3.11" in metadata
    entry_points = archive.read(f"{folder}/entry_points.txt").decode()
    for script in ("autodiff", "autodiff-cli"):
        assert f"{script} = autodiff_cli.cli.main:main" in entry_points
    assert f"{folder}/licenses/LICENSE" in archive.namelist()


def test_installed_copy_is_the_one_used(scripts: Path, tmp_path: Path) -> None:
    ask = "import autodiff_cli; print(autodiff_cli.__file__)"
    used = Path(run(scripts / "python", "-c", ask, cwd=tmp_path).strip())
    assert used.is_relative_to(scripts.parent)
    assert (used.parent / "grammar" / "expr.lark").is_file()


@pytest.mark.parametrize("command", ["autodiff", "autodiff-cli", "-m"])
def test_sample_runs_elsewhere(scripts: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "sample.expr").write_text(SAMPLE)
    start: list[str | Path] = [scripts / command]
    if command == "-m":
        start = [scripts / "python", "-m", "autodiff_cli"]
    output = run(*start, "run", "sample.expr", "--format", "json", cwd=tmp_path)
    document = json.loads(output)
    assert document["status"] == "ok"
    assert document["tensors"]["loss"]["value"] == 100.0
    assert document["tensors"]["A"]["grad"] == [[7.0, 10.0], [13.0, 16.0]]
    assert document["tensors"]["B"]["grad"] == [[1.0, 2.0], [3.0, 4.0]]
    if command == "-m":
        assert run(*start, "help", "tutorial", cwd=tmp_path).startswith("# Tutorial\n")


def test_editable_install_uses_the_tree(project: Path, tmp_path: Path) -> None:
    wheels, packages = tmp_path / "wheels", tmp_path / "site-packages"
    wheels.mkdir()
    ask = "import sys, hatchling.build as b; b.build_editable(sys.argv[1])"
    run(sys.executable, "-c", ask, wheels, cwd=project)
    (path,) = wheels.glob("*.whl")
    zipfile.ZipFile(path).extractall(packages)
    assert (packages / "autodiff_cli" / "grammar" / "expr.lark").is_file()
    assert not (packages / "autodiff_cli" / "__init__.py").exists()
    # That copy of the grammar lies first on the path, yet the tree's regular package wins.
    ask = (
        "import site, sys; site.addsitedir(sys.argv[1])\n"
        "import autodiff_cli; print(*autodiff_cli.__path__, sep='\\n')"
    )
    found = run(sys.executable, "-S", "-c", ask, packages, cwd=tmp_path)
    assert found.split("\n") == [str(project / "autodiff_cli"), ""]


# Other plugins of the environment, which take longer to load than these tests do.
OTHERS = (
    "hypothesispytest", "anyio", "typeguard", "jaxtyping", "zarr", "xdist", "xdist.looponfail",
    "randomly",
)  # fmt: skip


def pytest_says(scripts: Path, cwd: Path, *words: str) -> tuple[int, str]:
    """Exit code and output of the environment's own pytest, with the plugins installed there."""
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    others = [f"-pno:{name}" for name in OTHERS]
    command = [scripts / "python", "-m", "pytest", *others, "-p", "no:cacheprovider", "-rA", *words]
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


TREE = """\
  <ExprFile demo.expr>
    <ExprItem run>
    <ExprItem expect[3]>
    <ExprItem grad>
"""


def test_pytest_finds_the_plugin_by_its_entry_point(scripts: Path, tmp_path: Path) -> None:
    (tmp_path / "demo.expr").write_text(SAMPLE.replace("* A)", "* A)  #=> 99"))
    code, text = pytest_says(scripts, tmp_path, "--collect-only")
    assert code == 0 and TREE in text and "autodiff-cli-" in text
    code, text = pytest_says(scripts, tmp_path, "--junit-xml", "out.xml")
    assert code == 1 and "error[E603]: expectation failed: written 99, found 100" in text
    assert "PASSED demo.expr::grad" in text and "1 failed, 2 passed" in text
    assert 'name="grad"' in (tmp_path / "out.xml").read_text("utf-8")
    assert pytest_says(scripts, tmp_path, "-p", "no:autodiff")[0] == 5


PROBE = """\
import sys

def test_what_is_imported():
    ours = {name for name in sys.modules if name.startswith("autodiff_cli")}
    assert "autodiff_cli.cli.pytest_plugin" in ours
    assert ours <= {"autodiff_cli", "autodiff_cli.version", "autodiff_cli.cli",
                    "autodiff_cli.cli.pytest_plugin"}
    assert not {"click", "lark", "numpy", "rich"} & set(sys.modules)
"""


def test_the_plugin_imports_nothing_before_it_sees_a_program(scripts: Path, tmp_path: Path) -> None:
    (tmp_path / "test_probe.py").write_text(PROBE)
    code, text = pytest_says(scripts, tmp_path)
    assert code == 0, text

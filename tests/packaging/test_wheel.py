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
    build = ["-m", "build", "--wheel", "--no-isolation", "--outdir", folder, project]
    run(sys.executable, *build, cwd=folder)
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
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=folder)
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
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert expected <= names
    assert any(re.match(r"autodiff_cli/language/tables\.\w+$", name) for name in names)
    outside = {name for name in names if not name.startswith("autodiff_cli")}
    assert outside == set()


def test_metadata(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    folder = f"autodiff_cli-{__version__}.dist-info"
    metadata = archive.read(f"{folder}/METADATA").decode()
    runtime = re.findall(r"^Requires-Dist: ([\w.-]+)[^;\n]*$", metadata, re.MULTILINE)
    assert sorted(runtime) == ["click", "lark", "numpy", "rich", "scipy"]
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

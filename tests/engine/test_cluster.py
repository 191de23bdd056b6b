"""`--engine dask`: programs over files of many rows, on processes of a cluster of this machine."""

from __future__ import annotations

import io
import json
import os
import re
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff_cli as ad
from autodiff_cli import session
from autodiff_cli.cli.main import main
from autodiff_cli.cli.streams import Environment
from autodiff_cli.engine.rows import cluster as cluster_of_dask
from autodiff_cli.engine.rows import sources
from autodiff_cli.engine.rows.cluster import Cluster, connected
from autodiff_cli.engine.rows.job import Job, measure
from autodiff_cli.engine.rows.passes import TOGETHER, Rows
from autodiff_cli.engine.rows.sources import Columns, DaskSource, FileSource, Picked, npy, source_of
from autodiff_cli.errors import AutodiffError
from autodiff_cli.render.document import document
from autodiff_cli.session import Options, Report
from autodiff_cli.source import Source

from .. import recorded
from ..later import Later
from ..together import together

dask, da, distributed = Later("dask"), Later("dask.array"), Later("distributed")
zarr = Later("zarr")

METHOD = "distributed.worker.multiprocessing-method"
# What workers would import, each for itself.
IMPORTED = ["distributed", "dask.dataframe", "pyarrow.parquet", "zarr", "autodiff_cli.session"]
ROWS = 1_000
PROGRAM = """\
X = const([[1., 2., 3.], [4., 5., 6.]])
y = const([0., 1.])
w = [0.5, -1., 2.]
z = (X - mean(X, 0)) @ w
loss = mean(softplus(z) - y * z)
"""
TRAINING = """\
import torch
X = torch.zeros(2, 3, dtype=torch.float64)
y = torch.zeros(2, dtype=torch.float64)
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).double()
opt = torch.optim.Adam(model.parameters(), lr=0.5)
for step in range(4):
    opt.zero_grad()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(model(X).squeeze(1), y)
    loss.backward()
    opt.step()
    print(loss.item())
"""
LOGISTIC = "z = X @ w; loss = mean(softplus(z) - y * z)"
SNIPPET = """\
import torch
X = torch.zeros(2, 3, dtype=torch.float64)
y = torch.zeros(2, dtype=torch.float64)
torch.manual_seed(1)
w = torch.ones(3, dtype=torch.float64, requires_grad=True)
"""
FEW_ROWS = [
    "print(len(X), X[7].tolist(), X[-3, 1].item(), X[:3].tolist(), X[990::4].sum().item(), X[5:5])",
    "print(X[torch.tensor([[5, -1], [900, 5]])].tolist())",
    "print(X.index_select(0, torch.arange(9, 4, -1)))",
    "z = X @ w\nprint(z[3:5].tolist(), (z[400:] * 2).sum().item())",
    "z = torch.tanh(X @ w)\nz[300:310].sum().backward()\nprint(w.grad.tolist())",
    """\
opt = torch.optim.SGD([w], lr=0.1, momentum=0.9)
for epoch in range(2):
    for i in range(0, len(X), 300):
        opt.zero_grad()
        loss = ((X[i:i + 300] @ w - y[i:i + 300]) ** 2).mean()
        loss.backward()
        opt.step()
        print(loss.item())
print(w.tolist())""",
    """\
from torch.utils.data import DataLoader, TensorDataset
for a, b in DataLoader(TensorDataset(X, y), batch_size=200, shuffle=True):
    w.data -= 0.01 * (a.T @ (a @ w - b)).detach()
print(w.tolist())""",
    "for i in torch.randperm(len(X)).split(400):\n    print((X[i] @ w * y[i]).mean().item())",
    "print((torch.nn.functional.dropout(X) @ w).sum().item())",
    "print((X * torch.randn_like(X) - torch.rand(len(X), 1))[2::50].tolist())",
]


@pytest.fixture(scope="module", autouse=True)
def idle() -> Iterator[None]:
    """Processes of a cluster that do nothing take no time: they look at themselves once a second,
    not fifty times. Workers are forks of one process that has imported what they need."""
    quiet = {
        METHOD: "forkserver",
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.interval": "1s",
        "distributed.admin.system-monitor.interval": "1s",
    }
    with dask.config.set(quiet):
        distributed.utils.get_mp_context().set_forkserver_preload(IMPORTED)
        yield


@contextmanager
def clustered(workers: int, **options: Any) -> Iterator[Any]:
    """A client of a cluster of this machine."""
    quiet = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=workers, **quiet, **options) as local,
        distributed.Client(local) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def client() -> Any:
    with clustered(2) as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows in every kind of file."""
    path = tmp_path_factory.mktemp("rows")
    random = np.random.default_rng(5)
    X = random.normal(size=(ROWS, 3))
    y = (X[:, 0] > 0.2).astype(float)
    for name, array in (("X", X), ("y", y)):
        np.save(path / f"{name}.npy", array)
        (path / f"{name}s").mkdir()
        for i, part in enumerate(np.split(array, [300, 310, 990])):
            np.save(path / f"{name}s" / f"{i}.npy", part)
        zarr.save_array(str(path / f"{name}.zarr"), array)
        pandas = pytest.importorskip("pandas")
        table = pandas.DataFrame(array.reshape(ROWS, -1)).rename(columns="abc".__getitem__)
        table.to_csv(path / f"{name}.csv", index=False)
        (path / f"{name}t").mkdir()
        for i, part in enumerate((table[:300], table[300:310], table[310:])):
            part.to_parquet(path / f"{name}t" / f"{i}.parquet")
        h5py = pytest.importorskip("h5py")
        with h5py.File(path / f"{name}.h5", "w") as file:
            file["rows"] = array
    (path / "p.expr").write_text(PROGRAM)
    (path / "t.py").write_text(TRAINING)
    return path


def command(client: Any, *words: str, verb: str = "run") -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    where = () if client is None else ("--scheduler", client.scheduler.address)
    env = Environment(io.StringIO(), out, err, {})
    return main([verb, *words, *where], env), out.getvalue(), err.getvalue()


def given(folder: Path, X: str, y: str) -> list[str]:
    return ["-D", f"X=@{folder / X}", "-D", f"y=@{folder / y}"]


KINDS = [
    "{}.npy", "{}s", "{}s/*.npy", "{}.zarr", "{}.h5", "{}.h5:rows", "{}.csv:{c}", "{}t:{c}",
    "{}t/*.parquet:{c}", "[{}].npy", "[{}].csv:{c}",
]  # fmt: skip


def in_blocks(client: Any, path: Path, X: Path, y: Path) -> Report:
    """A program in blocks of 4 KiB: on a cluster, or in threads of this process, which is
    quicker."""
    cluster = Cluster(client, 4096)
    files = ("X", f"@{X}", False), ("y", f"@{y}", False)
    options = Options(write=str, defines=files, cluster=cluster, opened=cluster.opened)
    return session.run(Source(path.read_text(), path.name), options)


@pytest.fixture(scope="module")
def true(folder: Path) -> dict[str, dict[str, Any]]:
    """What the program gives without blocks."""
    words = [str(folder / "p.expr"), *given(folder, "X.npy", "y.npy"), "--format", "json"]
    found: dict[str, dict[str, Any]] = json.loads(command(None, *words)[1])["tensors"]
    return found


@together(KINDS)
def test_every_kind_of_file(
    kind: str, request: pytest.FixtureRequest, folder: Path, true: dict[str, Any]
) -> None:
    """On the cluster one of files, and one of parts of a table."""
    there = request.getfixturevalue("client") if kind in ("{}.h5", "{}t:{c}") else None
    files = [folder / kind.format(n, c=c) for n, c in (("X", "a,b,c"), ("y", "a"))]
    report = in_blocks(there, folder / "p.expr", *files)
    assert report.error is None, report.error
    found = document(report)
    assert set(found["tensors"]) == {"w", "loss"}
    for key in ("value", "grad"):
        mine, theirs = (d["w"][key] for d in (found["tensors"], true))
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    loss = true["loss"]["value"]
    assert found["tensors"]["loss"]["value"] == pytest.approx(loss, rel=1e-13)
    z = np.array(true["z"]["value"])
    blocked = found["blocked"]
    assert set(blocked) == {"X", "y", "z"}
    assert blocked["z"] == {
        "shape": [ROWS], "dtype": "float64", "blocks": 6, "norm": pytest.approx(np.linalg.norm(z)),
        "min": pytest.approx(z.min()), "max": pytest.approx(z.max()), "finite": True,
    }  # fmt: skip


def test_training(client: Any, folder: Path) -> None:
    files = given(folder, "X.npy", "y.npy")
    code, out, err = command(
        client, str(folder / "t.py"), *files, "--engine", "dask", "--chunk", "4K"
    )
    assert (code, err) == (0, "")
    true = command(None, str(folder / "t.py"), *files)[1]
    losses = [[float(line) for line in text.split("\n")[:4]] for text in (out, true)]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-11)
    assert losses[0][-1] < 0.5 * losses[0][0]


@together(FEW_ROWS)
def test_few_rows_leave_their_blocks(text: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(SNIPPET + text)
    report = in_blocks(None, tmp_path / "p.py", folder / "X.npy", folder / "y.npy")
    assert report.error is None, report.error
    words = [str(tmp_path / "p.py"), *given(folder, "X.npy", "y.npy"), "--only", "gradients"]
    texts = [report.stdout, command(None, *words)[1].split("# autodiff.plain")[0]]
    np.testing.assert_allclose(*map(numbers, texts), rtol=1e-12, atol=1e-14)
    assert len({NUMBER.sub("", text) for text in texts}) == 1 and numbers(report.stdout)


PRODUCTS = [("hessian", "--hvp", "ones"), ("hessian", "--diag"), ("jacobian", "--of", "loss")]
NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[-+]\d+)?")


def numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]


@together([(verb, asked) for verb, *asked in PRODUCTS])
def test_derivatives(verb: str, asked: list[str], client: Any, folder: Path) -> None:
    words = [str(folder / "p.expr"), *given(folder, "X.npy", "y.npy"), *asked]
    code, out, err = command(client, *words, "--engine", "dask", "--chunk", "4K", verb=verb)
    assert (code, err) == (0, "")
    true = command(None, *words, verb=verb)[1]
    assert out != true and NUMBER.sub("", out) == NUMBER.sub("", true)
    np.testing.assert_allclose(numbers(out), numbers(true), rtol=1e-11)


WIDE = """\
import torch
X = torch.zeros(2, 3, dtype=torch.float64)
y = torch.zeros(2, dtype=torch.float64)
w = torch.nn.Parameter(torch.zeros(X.shape[1], dtype=torch.float64))
opt = torch.optim.Adam([w], lr=0.01)
for step in range(2):
    opt.zero_grad()
    p = torch.softmax(X * w, 1)
    loss = ((X @ w - y) ** 2).mean() + (p * p).sum() + torch.logsumexp(X, 1).mean()
    loss.backward()
    opt.step()
    print(loss.item(), w.norm().item(), torch.linalg.norm(X, dim=1).sum().item())
print(X[3].sum().item(), X[:, 5:7].sum(1).tolist(), w[::50].tolist())
"""
CUT = 5  # 4,000 columns of 4 numbers, 960 in 30 KiB
PATHS = ["X.zarr", "X.npy", "X.h5", "Xs"]


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of 4,000 numbers, in kinds of files; zarr and HDF5 in chunks of whole columns."""
    path = tmp_path_factory.mktemp("wide")
    X = np.random.default_rng(6).normal(size=(4, 4_000))
    np.save(path / "X.npy", X)
    np.save(path / "y.npy", X[:, 0])
    (path / "Xs").mkdir()
    for i, part in enumerate(np.split(X, [2, 3])):
        np.save(path / "Xs" / f"{i}.npy", part)
    zarr.create_array(str(path / "X.zarr"), shape=X.shape, chunks=(4, 100), dtype="f8")[:] = X
    with pytest.importorskip("h5py").File(path / "X.h5", "w") as file:
        file.create_dataset("rows", data=X, chunks=(4, 100))
    return path


@pytest.fixture(scope="module")
def uncut(wide: Path) -> Report:
    """What the program gives without blocks."""
    given = tuple((name, f"@{wide / name}.npy", False) for name in "Xy")
    return session.run(Source(WIDE, "t.py"), Options(write=str, defines=given))


@together(PATHS)
def test_columns_are_cut_where_a_row_is_no_block(kind: str, wide: Path, uncut: Report) -> None:
    cluster = Cluster(None, 30 << 10)
    given = ("X", f"@{wide / kind}", False), ("y", f"@{wide / 'y.npy'}", False)
    options = Options(write=str, defines=given, cluster=cluster, opened=cluster.opened)
    report = session.run(Source(WIDE, "t.py"), options)
    assert report.error is None and len(cluster.bounds) - 1 == CUT
    texts = [report.stdout, uncut.stdout]
    np.testing.assert_allclose(*map(numbers, texts), rtol=1e-11, atol=1e-13)
    assert len({NUMBER.sub("", text) for text in texts}) == 1 and numbers(report.stdout)


def test_which_axis_is_cut(tmp_path: Path) -> None:
    """Columns where a row is no block, or rows would read each chunk many times more often."""
    shape, made = (24, 4_000), str(tmp_path / "rows.zarr")
    zarr.create_array(made, shape=shape, chunks=(3, 4_000), dtype="f8")
    whole = str(tmp_path / "columns.zarr")
    zarr.create_array(whole, shape=(8, 4_000), chunks=(8, 100), dtype="f8")
    axes = {}
    for path, chunk in ((made, 16), (made, 32), (whole, 32), (made, 100)):
        source = source_of(path)
        assert source is not None
        cluster = Cluster(None, chunk << 10)
        cluster.blocked(source)
        axes[path == made, chunk] = cluster.axis, len(cluster.bounds) - 1
    assert axes == {
        (True, 16): (1, 48),
        (True, 32): (0, 24),
        (False, 32): (1, 8),
        (True, 100): (0, 8),
    }
    large = np.lib.format.open_memmap(tmp_path / "y.npy", "w+", shape=(24, 400_000))
    assert not npy(str(tmp_path / "y.npy")).flags.writeable
    source = source_of(str(tmp_path / "y.npy"))
    cluster = Cluster(None, 16 << 10)
    first = source_of(made)
    assert first is not None and source is not None and cluster.blocked(first).rows == (1, 1)
    with pytest.raises(AutodiffError, match=r"no axis to cut .* along axis 1, 4000 long"):
        cluster.blocked(source)
    del large


def test_nothing_larger_than_a_block_is_read(tmp_path: Path) -> None:
    """A row of 8 MB and a column of 3 MB: neither fits; the help says what does."""
    zarr.create_array(str(tmp_path / "X.zarr"), shape=(400_000, 1_000_000), dtype="f8")
    source = source_of(str(tmp_path / "X.zarr"))
    assert source is not None
    with pytest.raises(AutodiffError, match=r"one index of axis 0 takes 7\.6 MiB") as found:
        Cluster(None, 1 << 20).blocked(source)
    assert "--chunk 8M" in found.value.diagnostic.helps[0]
    cluster = Cluster(None, 8 << 20)
    cluster.blocked(source)
    assert source.bytes_of(cluster.axis) <= 8 << 20


def test_sums_that_no_worker_could_combine(client: Any, folder: Path) -> None:
    """`X.T @ X` of 500 columns is 2 MB for each block."""
    np.lib.format.open_memmap(folder / "wide.npy", "w+", shape=(100, 500))
    program = folder / "gram.expr"
    program.write_text("X = [[1.0]]\nloss = sum((X.T @ X)[0])\n")
    words = [str(program), "-D", f"X=@{folder / 'wide.npy'}", "--engine", "dask", "--max-memory"]
    code, _, err = command(client, *words, "17M")
    assert code == 4 and "`matmul` and what else leaves each block take 1.9 MiB" in err, err
    assert "--max-memory 18M" in err
    assert command(client, *words, "18M")[0] == 0


def test_the_widest_array_says_how_many_rows_a_block_has(folder: Path) -> None:
    cluster = Cluster(None, 4096)
    for name, blocks in (("y.npy", 2), ("X.npy", 6), ("y.zarr", 6)):
        source = source_of(str(folder / name))
        assert source is not None
        cluster.blocked(source)
        assert len(cluster.bounds) - 1 == blocks


def test_results_with_rows_are_written(client: Any, folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.zarr"
    words = ["--engine", "dask", "--chunk", "4K", "--show", "z", "-o", str(target)]
    files = given(folder, "X.zarr", "y.zarr")
    assert command(client, str(folder / "p.expr"), *files, *words)[0] == 0
    X = np.load(folder / "X.npy")
    z = zarr.open_group(str(target), mode="r")["z"][:]
    np.testing.assert_allclose(z, (X - X.mean(0)) @ [0.5, -1.0, 2.0], rtol=1e-12, atol=1e-15)


def test_what_is_read_is_not_written(client: Any, folder: Path) -> None:
    files = given(folder, "X.zarr", "y.zarr")
    words = ["--engine", "dask", "-o", str(folder / "X.zarr")]
    code, _, err = command(client, str(folder / "p.expr"), *files, *words)
    assert code == 2 and "it is a folder" in err
    assert np.array_equal(zarr.open(str(folder / "X.zarr"), mode="r")[:], np.load(folder / "X.npy"))


def test_no_rows(client: Any, folder: Path, tmp_path: Path) -> None:
    for name, shape in (("X", (0, 3)), ("y", 0)):
        np.save(tmp_path / f"{name}.npy", np.zeros(shape))
    program = tmp_path / "p.expr"
    program.write_text(
        "X = const([[1.]])\ny = const([0.])\nw = [1., 2., 3.]\nloss = sum((X @ w - y)**2)"
    )
    words = [str(program), *given(tmp_path, "X.npy", "y.npy"), "--only", "gradients"]
    code, out, err = command(client, *words, "--engine", "dask")
    assert (code, err) == (0, "") and "w.grad = [0.0, 0.0, 0.0]" in out


def test_tables(client: Any, folder: Path) -> None:
    words = ["--engine", "dask", "--chunk", "4K", "--format", "rich"]
    code, out, _ = command(client, str(folder / "p.expr"), *given(folder, "X.npy", "y.npy"), *words)
    assert code == 0
    *_, title, head, _, x, y, z = out.rstrip("\n").split("\n")
    assert title == "In blocks" and head.split() == [
        "name",
        "shape",
        "dtype",
        "blocks",
        "norm",
        "min",
        "max",
    ]
    assert [row.split()[0] for row in (x, y, z)] == ["X", "y", "z"]
    assert "(1000, 3)" in x and x.split()[3] == "float64" and "(1000,)" in y


def test_a_cluster_of_its_own(folder: Path) -> None:
    words = ["--engine", "dask", "--workers", "1", "--only", "gradients"]
    code, out, err = command(None, str(folder / "p.expr"), *given(folder, "X.npy", "y.npy"), *words)
    assert (code, err) == (0, "") and "w.grad = [" in out


WRONG = [
    (["-D", "X=@X.npy", "-D", "y=@p.expr"], "E702"),
    (["-D", "X=@X.npy", "-D", "y=@short.npy"], "E606"),
    (["-D", "X=@nothing/*.npy"], "E701"),
    (["-D", "X=@X.npy", "-D", "y=@y.npy", "-e", "loss = sum(cumsum(z, 0))"], "E606"),
    (["-D", "X=@X.npy", "-D", "y=@y.npy", "-e", "print(X)"], "E606"),
]


LARGE = [
    ("torch.nn.functional.dropout(y)", "random numbers, 76.3 MiB, are drawn one after the other"),
    ("torch.rand_like(y)", "random numbers, 76.3 MiB,"),
    ("np.random.randn(len(y))", "random numbers, 76.3 MiB,"),
    ("y[:9_000_000]", "`slice` takes an array (9000000,) out of blocks, 68.7 MiB:"),
    ("torch.arange(100 * len(y))", "need more than 1.0 GiB"),
]


@pytest.mark.parametrize(("text", "said"), LARGE)
def test_what_would_be_too_large(text: str, said: str, client: Any, tmp_path: Path) -> None:
    """Rows of zeros that take no room on a disk."""
    np.lib.format.open_memmap(tmp_path / "y.npy", "w+", shape=(10_000_000,))
    program = tmp_path / "p.py"
    program.write_text(
        f"import numpy as np\nimport torch\ny = torch.zeros(2)\nz = {text}\nprint(z.sum())"
    )
    words = [str(program), "-D", f"y=@{tmp_path / 'y.npy'}", "--engine", "dask"]
    code, _, err = command(client, *words)
    assert code == 4 and said in err, err


@pytest.mark.parametrize(("words", "code"), WRONG)
def test_what_cannot_be_done(
    words: list[str], code: str, client: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    np.save(folder / "short.npy", np.zeros(3))
    status, _, err = command(client, "p.expr", *words, "--engine", "dask")
    assert f"error[{code}]" in err and "\nhelp: " in err
    assert status == 4


def test_nobody_answers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autodiff_cli.engine.rows.cluster.ANSWERS", 0.5)
    words = ["--engine", "dask", "--scheduler", "tcp://127.0.0.1:9"]
    code, _, err = command(None, str(folder / "p.expr"), *words)
    assert code == 2 and "error[E607]: no scheduler of Dask answers at tcp://127.0.0.1:9" in err


def test_a_cluster_wants_its_engine(folder: Path) -> None:
    code, out, err = command(None, str(folder / "p.expr"), "--workers", "2")
    assert (code, out) == (2, "") and "help: add --engine dask" in err


def test_without_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "dask", None)
    code, _, err = command(None, str(folder / "p.expr"), "--engine", "dask")
    assert code == 2 and "pip install 'autodiff-cli[dask]'" in err


def _opened(path: str, mark: str) -> np.ndarray:
    """The array; whoever first reads it with `mark` there dies."""
    if mark:
        try:
            os.remove(mark)
        except FileNotFoundError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    found: np.ndarray = np.load(path, mmap_mode="r")
    return found


class _Given:
    """A file in place of an array of Dask."""

    __dask_graph__ = None

    def __init__(self, path: str, source: Any = None):
        self.source = source or source_of(path)


def _by_files(function: Any, client: Any, chunk: int) -> Cluster:
    """The cluster of a function that takes files."""
    cluster = function.cluster = Cluster(client, chunk)
    cluster.of = lambda array: cluster.blocked(array.source)  # type: ignore[method-assign,attr-defined]  # reads
    return cluster


def _meanwhile(client: Any, path: Path, mark: Path) -> Any:
    """A loss and its slope, while the process of a worker dies."""
    source = FileSource(_opened, str(path), "")
    source.where = (str(path), str(mark))
    mark.touch()
    f = ad.value_and_grad("loss = sum(tanh(X @ w))", wrt="w", engine="dask", client=client)
    _by_files(f, client, 4096)
    return f(X=_Given("", source), w=np.array([0.5, -1.0, 2.0]))


def test_a_worker_that_dies(client: Any, folder: Path, tmp_path: Path) -> None:
    loss, slope = _meanwhile(client, folder / "X.npy", tmp_path / "mark")
    assert not (tmp_path / "mark").exists()
    X = np.load(folder / "X.npy")
    z = np.tanh(X @ [0.5, -1.0, 2.0])
    assert loss == pytest.approx(z.sum(), rel=1e-12)
    np.testing.assert_allclose(slope, X.T @ (1 - z**2), rtol=1e-10)


def test_workers_that_die_again_and_again(
    client: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    with pytest.raises(AutodiffError, match="KilledWorker") as error:
        _meanwhile(client, folder / "X.npy", tmp_path / "mark")
    assert error.value.code == "E608"


SCHEDULER = """\
import distributed
quiet = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
with distributed.LocalCluster(processes=False, protocol="tcp", **quiet) as local:
    pipe.send(local.scheduler_address)
    pipe.recv()
"""


def test_a_scheduler_that_dies(folder: Path, tmp_path: Path) -> None:
    processes = distributed.utils.get_mp_context()
    here, pipe = processes.Pipe()
    process = processes.Process(target=exec, args=(SCHEDULER, {"pipe": pipe}))
    process.start()
    address = here.recv()
    with connected(address, None, 4096, 1 << 30) as found, pytest.raises(AutodiffError) as error:
        _meanwhile(found.client, folder / "X.npy", tmp_path / "mark")
    process.join()
    assert error.value.code == "E608"
    assert error.value.message == f"the scheduler of Dask at {address} is gone"


# A worker where a package of the name cannot be imported, or says another version.
LACKING = "import sys; sys.modules |= {n: None for n in sys.modules if n[:12] == 'autodiff_cli'}"
OLDER = "import autodiff_cli.version; autodiff_cli.version.__version__ = '0.0.1'"


@pytest.mark.parametrize(
    ("before", "code", "said"),
    [(LACKING, "E608", "ModuleNotFoundError"), (OLDER, "E607", "has autodiff-cli")],
)
def test_workers_with_other_packages(
    before: str, code: str, said: str, folder: Path, tmp_path: Path
) -> None:
    with clustered(1, preload=[before]) as client:
        words = [str(folder / "p.expr"), *given(folder, "X.npy", "y.npy"), "--engine", "dask"]
        status, _, err = command(client, *words)
    assert f"error[{code}]" in err and said in err and status == (2 if code == "E607" else 4)


def test_progress(client: Any, folder: Path) -> None:
    told, over = [], threading.Event()
    with connected(client.scheduler.address, None, 4096, 1 << 30) as cluster:
        heard = cluster._heard

        def listening(event: Any) -> None:
            heard(event)
            told.append(cluster.progress())
            if cluster.done == cluster.blocks:
                over.set()

        cluster.client.unsubscribe_topic(cluster.topic)
        cluster.client.subscribe_topic(cluster.topic, listening)
        source = source_of(str(folder / "X.npy"))
        assert source is not None
        f = ad.value_and_grad("loss = sum(X @ w)", wrt="w", engine="dask", client=client)
        f.cluster = cluster  # type: ignore[attr-defined]  # not of every engine
        f(X=da.from_array(np.ones((ROWS, 3))), w=np.ones(3))
        assert over.wait(60)
    assert told == [f"{i} of 6 blocks" for i in range(1, 7)]


def _data(tensors: dict[str, Any]) -> dict[str, np.ndarray]:
    """Constants of a program that have the same number of rows."""
    given: dict[int, dict[str, np.ndarray]] = {}
    for name, t in tensors.items():
        rows = t["shape"][0] if t["shape"] else 0
        if t["is_leaf"] and not t["requires_grad"] and t["dtype"][:5] == "float" and rows > 2:
            array = np.array(t["value"], float).astype(t["dtype"]).reshape(t["shape"])
            given.setdefault(rows, {})[name] = array
    return max(given.values(), key=len, default={})


def _results(report: Report) -> dict[str, Any]:
    values = {name: t.value for name, t in report.tensors.items()}
    return values | {f"{name}.grad": t.grad for name, t in report.tensors.items()}


def test_programs_in_blocks(tmp_path: Path) -> None:
    """Programs of few steps whose data are in files: in blocks of two rows, or of a 64th of many,
    as at once, or refused by name."""
    same, refused = 0, []
    for case in recorded.cases("programs")[::4]:
        source = Source(case["source"], "p.py")
        data = _data(case["tensors"])
        if not data:
            continue
        for name, array in data.items():
            np.save(tmp_path / f"{name}.npy", array)
        given = tuple((name, f"@{tmp_path / name}.npy", False) for name in data)
        true = session.run(source, Options(write=str, defines=given, max_steps=300))
        if true.error is not None:
            continue
        first = next(iter(data.values()))
        cluster = Cluster(None, max(2, len(first) // 64) * first[:1].nbytes)
        there = Options(write=str, defines=given, cluster=cluster, opened=cluster.opened)
        report = session.run(source, there)
        if report.error is not None:
            assert report.error.code == "E606", (case["id"], report.error.message)
            refused.append(f"{case['id']}: {report.error.message}")
            continue
        cluster.store(str(tmp_path / "out.zarr"), report.blocked)
        found = _results(report)
        for name, array in zarr.open_group(str(tmp_path / "out.zarr"), mode="r").arrays():
            found[name] = array[:]
        for name, expected in _results(true).items():
            value = found.get(name)
            assert (value is None) == (expected is None), (case["id"], name)
            if expected is not None:
                assert value.dtype == expected.dtype, (case["id"], name)
                close = 1e-10 if value.dtype == np.float64 else 2e-5
                np.testing.assert_allclose(value, expected, close, close, err_msg=case["id"])
        same += 1
    print(f"{same} programs are the same in blocks; refused:", *refused, sep="\n")
    assert same >= 15


ROLES = """\
X = [[1., 2., 3.]]; n = const([1, 2]); h = X * 2; y = [1.]
loss = sum(h) + sum(y * y)
for t in (X, n, h, y, loss): print(t.dtype, t.shape, t.requires_grad, t.is_leaf)
"""


@together([(name, dtype) for name in "Xnhy" for dtype in ("i8", "f4", "f8", "?")])
def test_what_is_given_is_what_it_replaces(name: str, dtype: str, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.arange(12).reshape(4, 3).astype(dtype))
    given = ((name, f"@{tmp_path / 'rows.npy'}", False),)
    here, cluster = Options(write=str, defines=given), Cluster(None, 24)
    there = Options(write=str, defines=given, cluster=cluster, opened=cluster.opened)
    source = Source(ROLES, "p.expr")
    true, found = (session.run(source, options) for options in (here, there))
    assert found.error is None and found.stdout == true.stdout != ""
    assert list(found.blocked) == (["X", "h"] if name == "X" else [name])


@pytest.mark.parametrize("there", [True, False])
def test_arrays_of_dask(there: bool, client: Any, folder: Path) -> None:
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    program = "z = X @ w; loss = mean(softplus(z) - y * z)"
    w = np.array([0.5, -1.0, 2.0])
    where = {"engine": "dask", "client": client if there else None}
    blocks = {"X": da.from_array(X, chunks=(170, 2)), "y": da.from_array(y, chunks=333)}
    loss, slopes = ad.value_and_grad(program, wrt=["w", "X"], **where)(w=w, **blocks)
    true, exact = ad.value_and_grad(program, wrt=["w", "X"])(w=w, X=X, y=y)
    assert loss == pytest.approx(true, rel=1e-13)
    np.testing.assert_allclose(slopes["w"], exact["w"], rtol=1e-12)
    assert isinstance(slopes["X"], da.Array)
    np.testing.assert_allclose(slopes["X"].compute(), exact["X"], rtol=1e-12)
    product = ad.hvp(program, wrt="w", **where)(w, w=w, **blocks)
    np.testing.assert_allclose(product, ad.hvp(program, wrt="w")(w, w=w, X=X, y=y), rtol=1e-12)


CHECKED = """
assert X.shape == (168, 3) and y.shape == (168,)
assert abs(sum(X[:, 0]) - {}) < 1e-12 and abs(sum(y) - {}) < 1e-12
"""


def test_a_sample_is_checked(folder: Path, tmp_path: Path) -> None:
    """Eight stretches of 21 rows, 4 KB of the first array."""
    rows = [start + i for start in np.linspace(0, ROWS - 21, 8).astype(int) for i in range(21)]
    sums = [np.load(folder / f"{name}.npy")[rows].reshape(168, -1)[:, 0].sum() for name in "Xy"]
    program = tmp_path / "p.expr"
    program.write_text(PROGRAM + CHECKED.format(*sums))
    words = ["check", str(program), "--engine", "dask", "--chunk", "4K"]
    for kind in ("{}.zarr", "{}t"):
        out, err = io.StringIO(), io.StringIO()
        files = given(folder, kind.format("X"), "ys")
        assert main([*words, *files], Environment(io.StringIO(), out, err, {})) == 0, err.getvalue()
        assert "4 passed" in out.getvalue()
    short = given(folder, "X.npy", "few.npy")
    np.save(folder / "few.npy", np.zeros(3))
    assert main([*words, *short], Environment(io.StringIO(), out, err, {})) == 4
    assert "arrays with 3 and with 1000 rows" in err.getvalue()


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def test_memory_does_not_depend_on_rows(tmp_path: Path) -> None:
    """Rows of zeros that take no room on a disk: 2 and then 8 blocks of 8 MB."""
    peaks = []
    with clustered(1) as client:
        for blocks in (2, 8):
            rows = blocks * 20_000
            X = np.lib.format.open_memmap(tmp_path / f"X{blocks}.npy", "w+", shape=(rows, 50))
            np.save(tmp_path / f"y{blocks}.npy", np.ones(rows))
            del X
            f = ad.value_and_grad(LOGISTIC, wrt="w", engine="dask", client=client)
            files = {name: _Given(str(tmp_path / f"{name}{blocks}.npy")) for name in "Xy"}
            cluster = _by_files(f, client, 20_000 * 400)
            loss, slope = f(w=np.ones(50), **files)
            assert loss == pytest.approx(np.log(2), rel=1e-13)
            assert np.array_equal(slope, np.zeros(50))
            assert cluster.blocks == blocks
            peaks.append(max(client.run(_peak).values()))
    assert peaks[1] - peaks[0] < 2 * 8


def test_sources(folder: Path) -> None:
    X = np.load(folder / "X.npy")
    for name in ("X.npy", "Xs", "Xs/*.npy", "X.zarr", "X.h5"):
        source = source_of(str(folder / name))
        assert source is not None and source.shape == X.shape
        for start, stop in ((0, 1), (299, 311), (5, ROWS), (990, 991)):
            assert np.array_equal(source.at(start, stop)(), X[start:stop])
    assert source_of(str(folder / "p.json")) is None
    with pytest.raises(AutodiffError, match="shape or dtype"):
        np.save(folder / "Xs" / "9.npy", np.zeros((2, 4)))
        source_of(str(folder / "Xs"))
    os.remove(folder / "Xs" / "9.npy")


DTYPES = {
    "float16": "float16", "float32": "float32", ">f8": "float64", "bool": "bool", "uint8": "uint8",
    "int16": "int16", "uint16": "int32", "uint32": "int64",
}  # fmt: skip


def test_dtypes_of_sources(tmp_path: Path) -> None:
    for held, seen in DTYPES.items():
        array = np.arange(12).reshape(6, 2).astype(held)
        np.save(tmp_path / "X.npy", array)
        file = source_of(str(tmp_path / "X.npy"))
        assert file is not None
        for source in (file, DaskSource(da.from_array(array, chunks=(4, 1)))):
            assert source.dtype == seen and source.shape == (6, 2), held
            assert source.chunks == (None if source is file else (4, 1))
            for axis, expected in ((0, array[1:5]), (1, array[:, 1:])):
                source.axis = axis
                read = source.read(1, 5 - 3 * axis)
                assert read.dtype == seen and np.array_equal(read, expected), held


def test_sources_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    h5py = pytest.importorskip("h5py")
    for name, parts in (
        ("two", {"a": np.ones(3), "b": np.ones(3)}),
        ("text", {"a": np.array([b"x"])}),
        ("large", {"a": np.array([1], np.uint64)}),
    ):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file.update(parts)
    (tmp_path / "broken.h5").write_bytes(b"no")
    zarr.save_array(str(tmp_path / "a.zarr"), np.ones(3))
    monkeypatch.setitem(__import__("sys").modules, "zarr", None)
    for name, key, said in (
        ("two.h5", None, "two.h5 holds several arrays: a, b"),
        ("two.h5", "c", "two.h5`: KeyError: "),
        ("text.h5", None, "an array of |S1 is no kind of tensor"),
        ("large.h5", None, "an array of uint64 is no kind of tensor"),
        ("broken.h5", None, "broken.h5`: OSError: "),
        ("a.zarr", None, "`zarr` is not installed"),
    ):
        with pytest.raises(AutodiffError) as caught:
            source_of(str(tmp_path / name), key)
        assert said in caught.value.message and caught.value.diagnostic.helps


def test_columns_of_a_table_are_cut_along_both_axes() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1, 2, 3], "b": [4.0, 5.0, 6.0]})
    columns = Columns(table, (3, 2), np.dtype(float))
    assert columns.at(1, 3).tolist() == [[2.0, 5.0], [3.0, 6.0]]
    columns.axis = 1
    assert columns.at(0, 1).tolist() == [[1.0], [2.0], [3.0]]


def test_nothing_else_imports_dask(project: Path) -> None:
    for path in (project / "autodiff_cli").rglob("*.py"):
        if path.parent.name != "rows":
            text = path.read_text("utf-8")
            assert "import dask" not in text and "from dask" not in text, path


def test_a_file_larger_than_memory(folder: Path) -> None:
    words = given(folder, "X.npy", "y.npy")
    code, _, err = command(None, str(folder / "p.expr"), *words, "--max-memory", "8K")
    assert code == 4 and "needs 23.6 KiB of memory, the limit is 8.0 KiB" in err
    assert "\nhelp: or compute it in blocks of rows: --engine dask\n" in err


def test_interrupts_are_not_for_workers() -> None:
    before = signal.getsignal(signal.SIGINT)
    with dask.config.set({METHOD: "spawn"}), connected(None, 1, 1 << 20, 1 << 30) as cluster:
        assert signal.getsignal(signal.SIGINT) is before
        handlers = cluster.client.run(signal.getsignal, signal.SIGINT)
    assert set(handlers.values()) == {signal.SIG_IGN}


# The shape of an array, which of its rows, how many bytes are read at once, and in how many parts.
NEAR = [
    ((400, 3), 2, sources.SPAN, 1),
    ((8, 4096), 2, sources.SPAN, 1),  # 64 KiB from row to row
    ((8, 4097), 2, sources.SPAN, 4),
    ((8, 9000), 1, sources.SPAN, 1),
    ((30, 4), 1, 320, 3),
    ((30, 4), 3, 320, 3),
    ((50, 4), 25, 320, 2),
]


@together([(*near, dask) for near in NEAR for dask in (False, True)])
def test_rows_of_given_numbers_are_read_together_where_they_are_near(
    shape: tuple[int, int],
    every: int,
    span: int,
    reads: int,
    dask: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sources, "SPAN", span)
    array = np.arange(shape[0] * shape[1], dtype=float).reshape(shape)
    np.save(tmp_path / "X.npy", array)
    source = DaskSource(da.from_array(array)) if dask else source_of(str(tmp_path / "X.npy"))
    assert source is not None
    asked: list[tuple[int, int]] = []
    whole, source.at = source.at, lambda *ends: asked.append(ends) or whole(*ends)  # type: ignore[method-assign,func-returns-value]  # counts
    rows = np.arange(1, shape[0], every)
    assert (Picked(source, rows).read(0, rows.size) == array[rows]).all()
    assert len(asked) == reads
    assert Picked(source, rows).read(2, 2).shape == (0, shape[1])


def test_a_task_takes_rows_of_a_few_blocks(tmp_path: Path) -> None:
    array = np.arange(90.0).reshape(30, 3)
    np.save(tmp_path / "X.npy", array)
    source = source_of(str(tmp_path / "X.npy"))
    assert source is not None
    cluster = Cluster(None, source.bytes_of(0))  # a row is a block
    held = cluster.blocked(source)
    assert isinstance(held, Rows)
    asked: list[tuple[int, int]] = []
    whole, source.at = source.at, lambda *ends: asked.append(ends) or whole(*ends)  # type: ignore[method-assign,func-returns-value]  # counts
    first = Job(1, (), (), (0,), (), 1 << 20)
    rows = np.array([0, 1, 20, 21, 29])
    assert (cluster.run(first, [source], [], [0], rows)[0] == array[rows]).all()
    assert len(asked) > 1 and all(stop - start <= TOGETHER for start, stop in asked)


# The size and the chunks of an array of numbers of 8 bytes, and which axis blocks of 800 cut.
CUTS = [
    ((10, 10), None, 0),
    ((10, 100), None, 0),
    ((10, 101), None, 1),
    ((100, 10), (80, 1), 1),
    ((100, 10), (70, 1), 0),
    ((50, 10), (10, 50), 0),
    ((100, 100), (8, 1), 1),
    ((100, 100), (7, 1), 0),
    ((100, 100), (16, 2), 1),
    ((100, 100), (8, 2), 0),
]


@together(CUTS)
def test_rows_are_cut_unless_that_reads_far_more(
    shape: tuple[int, ...], chunks: tuple[int, ...] | None, axis: int
) -> None:
    source = sources.Source()
    source.shape, source.chunks = shape, chunks
    assert source.axis_for(800) == axis


@pytest.mark.parametrize(
    ("shape", "asked", "axis"),
    [((6,), 1, 0), ((6, 6), 1, 1), ((4, 6), 0, None), ((6, 4), 0, 0), ((4, 6), 1, 1),
     ((4, 5, 6), 1, 2), ((6, 5, 6), 1, 0), ((4, 5), 1, None)],
)  # fmt: skip
def test_which_axis_of_further_arrays_is_cut(
    shape: tuple[int, ...], asked: int, axis: int | None
) -> None:
    source = sources.Source()
    source.shape = shape
    assert source.cut(asked, 6) == (axis is not None)
    assert source.axis == (axis or 0)


def test_small_arrays_are_whole_beside_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, shape in (("X", (2, 400)), ("y", (9, 6)), ("z", (400, 2))):
        np.save(tmp_path / f"{name}.npy", np.ones(shape))
    for limit, whole in ((432, True), (431, False)):
        monkeypatch.setattr(cluster_of_dask, "WHOLE", limit)
        cluster = Cluster(None, 800)
        X, y, z = (source_of(str(tmp_path / f"{name}.npy")) for name in "Xyz")
        assert X is not None and y is not None and z is not None
        assert cluster.blocked(X).rows == (1, 1) and cluster.blocked(z).rows == (0, 1)
        if whole:
            assert np.array_equal(cluster.blocked(y), np.ones((9, 6)))
            continue
        with pytest.raises(AutodiffError, match="no axis to cut"):
            cluster.blocked(y)


def test_each_program_has_its_own_number_of_rows(tmp_path: Path) -> None:
    cluster = Cluster(None, 800)
    for rows in (6, 4):
        np.save(tmp_path / "X.npy", np.ones(rows))
        passes = cluster.engine(1 << 30)
        found = cluster.opened(str(tmp_path / "X.npy"), None)
        assert found is not None and found.shape == (passes.total,) == (rows,)


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_as_an_array_of_dask(axis: int, tmp_path: Path) -> None:
    array = np.arange(120.0).reshape((5, 2, 12) if axis == 0 else (2, 5, 12))
    source = DaskSource(da.from_array(array, chunks=(1, 1, 4)))
    source.axis = axis
    cluster = Cluster(None, 400)
    cluster.bounds = [0, 2, 4, 5]
    found = cluster.array(Rows(source, array.shape, array.dtype, (axis, 1)))
    assert found.shape == array.shape and np.array_equal(found.compute(), array)


def test_the_smallest_sample(tmp_path: Path) -> None:
    """A row of each stretch; single numbers are no rows."""
    np.save(tmp_path / "X.npy", np.arange(100.0))
    np.save(tmp_path / "one.npy", np.array(1.0))
    sample = sources.Sample(1)
    found = sample.opened(str(tmp_path / "X.npy"), None)
    assert found is not None and found.tolist() == [0, 14, 28, 42, 56, 70, 84, 99]
    for name in ("one.npy", "p.json"):
        assert sample.opened(str(tmp_path / name), None) is None
        assert Cluster(None, 800).opened(str(tmp_path / name), None) is None


def test_statistics_of_blocks_are_those_of_the_whole() -> None:
    parts = [np.array([3.0, -4.0]), np.array([12.0]), np.array([]), np.array([np.inf])]
    first, second, empty, infinite = map(measure, parts)
    whole = measure(np.concatenate(parts[:3]))
    assert not (first + infinite).finite
    for found in (first + second, first + second + empty):
        assert found._replace(blocks=1) == whole
    assert (whole.norm, whole.minimum, whole.maximum, whole.finite) == (13.0, -4.0, 12.0, True)

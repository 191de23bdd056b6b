"""`load` reads what NumPy wrote, stays in the folder, and survives hostile files."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autodiff_cli.autograd.tensor import Tensor
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.dtypes import FLOAT32
from autodiff_cli.graph.state import STATE
from autodiff_cli.language.python import loading
from autodiff_cli.language.python.array_files import read_npy
from autodiff_cli.language.python.loading import READ, files, load, read_array
from autodiff_cli.language.python.text_files import _csv_error

from ..said import compare

ARRAY = np.arange(6.0).reshape(2, 3)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A program's folder, with a file outside of it that must stay unread."""
    inside = tmp_path / "project"
    inside.mkdir()
    (tmp_path / "secret.csv").write_text("4242\n")
    STATE.reset()
    files().folder, files().allowed = inside, ()
    yield inside
    files().folder, files().allowed = None, ()
    READ.clear()
    STATE.reset()


def npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


def npz(compress: bool = False, **arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(out, **arrays)
    return out.getvalue()


def header(text: str, data: bytes = b"", version: int = 1) -> bytes:
    """A .npy file with a header of one's own."""
    raw = text.encode("latin1")
    return (
        b"\x93NUMPY"
        + bytes([version, 0])
        + struct.pack("<H" if version == 1 else "<I", len(raw))
        + raw
        + data
    )


def described(shape: str, dtype: str = "'<f8'", order: str = "False") -> str:
    return f"{{'descr': {dtype}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


def archive(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as target:
        for name, data in members:
            target.writestr(zipfile.ZipInfo(name), data, method)  # no time of day in it
    return out.getvalue()


TOLD: list[str] = []


@pytest.fixture(autouse=True)
def words(request: pytest.FixtureRequest) -> Iterator[None]:
    """What failures say is compared with what is recorded."""
    TOLD.clear()
    yield
    if TOLD:
        compare(request, TOLD)


def failure(call: Callable[[], Any]) -> AutodiffError:
    with pytest.raises(AutodiffError) as caught:
        call()
    assert caught.value.diagnostic.helps
    words = caught.value.message.partition(" archive: [Errno")[0]  # Python's own differ
    TOLD.extend((f"{caught.value.code} {words}", *caught.value.diagnostic.helps))
    return caught.value


# -- what is read ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "?"])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_npy(folder: Path, dtype: str, order: str, layout: Any) -> None:
    array = np.asarray(ARRAY.astype(order + dtype), order=layout)
    (folder / "x.npy").write_bytes(npy(array))
    tensor = load("x.npy")
    assert isinstance(tensor, Tensor)
    assert not tensor.requires_grad
    assert tensor.dtype == np.dtype(dtype)
    assert tensor.dtype.isnative
    assert np.array_equal(tensor.numpy(), ARRAY.astype(dtype))


@pytest.mark.parametrize(("given", "kept"), [("u2", "int32"), ("u4", "int64"), ("u8", "int64")])
def test_unsigned_integers_are_widened(folder: Path, given: str, kept: str) -> None:
    (folder / "x.npy").write_bytes(npy(ARRAY.astype(given)))
    assert load("x.npy").dtype.name == kept


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1, 1, 1), (2, 0, 4)])
def test_shapes_of_npy(folder: Path, shape: tuple[int, ...]) -> None:
    (folder / "x.npy").write_bytes(npy(np.ones(shape)))
    assert load("x.npy").shape == shape


def test_every_version_of_npy(folder: Path) -> None:
    data = np.array([1.0, 2.0]).tobytes()
    for version in (1, 2, 3):
        (folder / "x.npy").write_bytes(header(described("(2,)"), data, version))
        assert load("x.npy").numpy().tolist() == [1.0, 2.0]


def test_headers_of_python_2_are_read_in_silence(folder: Path) -> None:
    (folder / "x.npy").write_bytes(header(described("(2L,)"), np.array([1.0, 2.0]).tobytes()))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert load("x.npy").numpy().tolist() == [1.0, 2.0]
    assert not said


def test_bools_are_zero_and_one(folder: Path) -> None:
    (folder / "x.npy").write_bytes(header(described("(3,)", "'|b1'"), b"\x00\x02\xff"))
    assert load("x.npy").numpy().view(np.uint8).tolist() == [0, 1, 1]


@pytest.mark.parametrize("compress", [False, True])
def test_npz(folder: Path, compress: bool) -> None:
    (folder / "x.npz").write_bytes(npz(compress, a=ARRAY, b=np.arange(3)))
    found = load("x.npz", requires_grad=True)
    assert sorted(found) == ["a", "b"]
    assert found["a"].requires_grad
    assert not found["b"].requires_grad
    assert np.array_equal(found["a"].numpy(), ARRAY)


def test_names_of_members_lead_nowhere(folder: Path) -> None:
    (folder / "x.npz").write_bytes(
        archive(("../../evil.npy", npy(ARRAY)), ("/etc/a.npy", npy(ARRAY)), ("n.txt", b""))
    )
    assert sorted(load("x.npz")) == ["../../evil", "/etc/a"]
    assert [path.name for path in folder.parent.iterdir() if path.name != "secret.csv"] == [
        "project"
    ]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("1", [[1]]),
        ("1\n2\n", [[1], [2]]),
        ("\ufeff1,2\r\n3,4\r\n", [[1, 2], [3, 4]]),
        (' 1 ,"2"\n\n3,-4e-1\n', [[1, 2], [3, -0.4]]),
        ("# made by hand\n1,inf\n", [[1, float("inf")]]),
    ],
)
def test_csv(folder: Path, text: str, rows: Any) -> None:
    (folder / "x.csv").write_text(text, encoding="utf-8", newline="")
    tensor = load("x.csv", requires_grad=True)
    assert tensor.requires_grad
    assert tensor.dtype.name == "float64"
    assert tensor.numpy().tolist() == rows


def test_csv_header_and_default_dtype(folder: Path) -> None:
    (folder / "x.csv").write_text("a,b\n1,2\n")
    STATE.default_dtype = FLOAT32
    assert load("x.csv", header=True).dtype.name == "float32"
    error = failure(lambda: load("x.csv"))
    assert "'a'" in error.diagnostic.message
    assert "header=True" in error.diagnostic.helps[0]


@pytest.mark.parametrize(
    ("text", "values", "dtype"),
    [
        ("[[1.5, 2], [3, 4]]", [[1.5, 2], [3, 4]], "float64"),
        ("[1, 2]", [1, 2], "int64"),
        ("[true, false]", [True, False], "bool"),
        ("3.5", 3.5, "float64"),
        (
            '[1.0, "inf", "-inf", Infinity]',
            [1, float("inf"), float("-inf"), float("inf")],
            "float64",
        ),
        ("\ufeff[]", [], "float64"),
    ],
)
def test_json(folder: Path, text: str, values: Any, dtype: str) -> None:
    (folder / "x.json").write_text(text, encoding="utf-8")
    assert load("x.json").numpy().tolist() == values
    assert load("x.json").dtype.name == dtype


def test_json_dict_and_dtype(folder: Path) -> None:
    (folder / "x.json").write_text('{"w": [[1.0, 2.0]], "n": 3}')
    found = load("x.json", requires_grad=True, dtype=FLOAT32)
    assert found["w"].dtype.name == found["n"].dtype.name == "float32"
    assert found["n"].requires_grad


def test_folders_below_and_links_within(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "x.npy").write_bytes(npy(ARRAY))
    (folder / "link.npy").symlink_to("data/x.npy")
    for name in ("data/x.npy", "./data/../data/x.npy", str(folder / "data" / "x.npy"), "link.npy"):
        assert load(name).shape == (2, 3)
    assert READ[-1] == str(folder / "data" / "x.npy")


def test_allowed_folders(folder: Path) -> None:
    assert failure(lambda: load("../secret.csv")).code == "E704"
    files().allowed = (folder.parent,)
    assert load("../secret.csv").numpy().tolist() == [[4242]]
    files().folder = None
    assert load(str(folder.parent / "secret.csv")).numpy().tolist() == [[4242]]


def test_read_array_for_the_command_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "x.npz").write_bytes(npz(a=ARRAY, b=ARRAY + 1))
    (folder / "one.npz").write_bytes(npz(a=ARRAY))
    (folder / "x.json").write_text('{"k": [1.0]}')
    (folder / "x.npy").write_bytes(npy(ARRAY))
    assert read_array("../secret.csv").tolist() == [[4242]]
    assert np.array_equal(read_array("x.npz", "b"), ARRAY + 1)
    assert np.array_equal(read_array("one.npz"), ARRAY)
    assert read_array("x.json", "k").tolist() == [1.0]
    for path, key in (("x.npz", None), ("x.npz", "c"), ("x.npy", "a"), ("x.json", "z")):
        error = failure(lambda path=path, key=key: read_array(path, key))
        assert error.code == "E702"
        assert path in error.diagnostic.message


# -- what is refused -------------------------------------------------------------------------------


def encrypted() -> bytes:
    data = bytearray(archive(("a.npy", npy(ARRAY))))
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    return bytes(data)


HUGE = "9" * 60
FILES_REFUSED: list[tuple[str, str, bytes]] = [
    ("E702", "npy", b""),
    ("E702", "npy", b"\x93NUMPY"),
    ("E702", "npy", b"PK\3\4 not an array"),
    ("E702", "npy", npy(ARRAY)[:20]),
    ("E702", "npy", npy(ARRAY)[:-1]),
    ("E702", "npy", b"\x93NUMPY\x09\x00" + npy(ARRAY)[8:]),
    ("E702", "npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 100),
    ("E702", "npy", header(described("(1000000000000,)"), b"\0" * 64)),
    ("E702", "npy", header(described("(4611686018427387904, 4611686018427387904)"), b"\0" * 64)),
    ("E702", "npy", header(described(f"({HUGE},)"))),
    ("E702", "npy", header(described(f"(0, {HUGE})"))),
    ("E702", "npy", header(described("(-1,)"), b"\0" * 64)),
    ("E702", "npy", header(described("(True,)"), b"\0" * 64)),
    ("E702", "npy", header(described("(1.5,)"), b"\0" * 64)),
    ("E702", "npy", header(described("3"), b"\0" * 64)),
    ("E702", "npy", header(described("(" + "1," * 65 + ")"), b"\0" * 8)),
    ("E702", "npy", header(described("(1,)", "'<f99'"), b"\0" * 64)),
    ("E702", "npy", header(described("(1,)", "[('a', '<f8')]"), b"\0" * 64)),
    ("E702", "npy", header(described("(1,)", "('<f8', (2,))"), b"\0" * 64)),
    ("E702", "npy", header(described("(1,)", order="3"), b"\0" * 64)),
    ("E702", "npy", header("{'descr': '<f8'}\n")),
    ("E702", "npy", header("[" * 5000)),
    ("E702", "npy", header("-" * 5000 + "1")),
    ("E702", "npy", header("__import__('os').system('true')")),
    ("E702", "npy", header("\xff\x00{")),
    ("E702", "npy", npy(np.array([1j]))),
    ("E702", "npy", npy(np.array(["a"]))),
    ("E702", "npy", npy(np.array([b"a"]))),
    ("E702", "npy", npy(np.zeros(2, "V3"))),
    ("E702", "npy", npy(np.zeros(2, "M8[s]"))),
    ("E702", "npy", npy(np.zeros(2, np.longdouble))),
    ("E702", "npy", npy(np.array([2**63], np.uint64))),
    ("E703", "npy", npy(np.array([{}], object))),
    ("E703", "pkl", pickle.dumps(1)),
    ("E703", "pt", b""),
    ("E702", "npz", b""),
    ("E702", "npz", b"PK\5\6"),
    ("E702", "npz", b"PK\5\6" + b"\0" * 18),
    ("E702", "npz", b"PK\5\6" + b"\xff" * 8 + b"\0\0\0\0" + b"\xff" * 6),
    ("E505", "npz", b"PK\5\6" + b"\xff" * 18),
    ("E702", "npz", npz(a=ARRAY)[:-30]),
    ("E702", "npz", npz(a=ARRAY)[30:]),
    ("E702", "npz", npz(a=ARRAY).replace(struct.pack("<d", 1.0), struct.pack("<d", 9.0))),
    ("E702", "npz", npy(ARRAY)),
    ("E702", "npz", encrypted()),
    ("E702", "npz", archive(("a.txt", b"1"))),
    ("E702", "npz", archive(("a.npy", b"1,2"))),
    ("E702", "npz", archive(("a.npy", npy(ARRAY)), method=zipfile.ZIP_LZMA)),
    ("E702", "npz", archive(("a.npy", npy(ARRAY)), method=zipfile.ZIP_BZIP2)),
    ("E703", "npz", archive(("a.npy", npy(np.array([{}], object))))),
    ("E702", "csv", b""),
    ("E702", "csv", b"\n\n"),
    ("E702", "csv", b"# only a comment\n"),
    ("E702", "csv", b"1,2\n3\n"),
    ("E702", "csv", b"1,,2\n"),
    ("E702", "csv", b"1;2\n"),
    ("E702", "csv", b"1\t2\n"),
    ("E702", "csv", b"a,b\n1,2\n"),
    ("E702", "csv", b'"1,2\n3,4\n'),
    ("E702", "csv", b"1,\x002\n"),
    ("E702", "csv", b"\xff\xfe1\x00,\x002\x00"),
    ("E702", "csv", b"1,\xe9\n"),
    ("E702", "csv", b"1_000,2\n"),
    ("E702", "csv", b"0x10\n"),
    ("E702", "json", b""),
    ("E702", "json", b'"abc"'),
    ("E702", "json", b"null"),
    ("E702", "json", b"[1, null]"),
    ("E702", "json", b"[[1, 2], [3]]"),
    ("E702", "json", b"[1, [2]]"),
    ("E702", "json", b'[1, "2"]'),
    ("E702", "json", b'[{"a": 1}]'),
    ("E702", "json", b'{"a": {"b": 1}}'),
    ("E702", "json", b"[1, 2"),
    ("E702", "json", b"{'a': 1}"),
    ("E702", "json", b"\xff\xfe[\x001\x00]\x00"),
    ("E702", "json", b'["\xe9"]'),
    ("E702", "json", b"[" * 100_000),
    ("E702", "json", b"[" * 90 + b"1" + b"]" * 90),
    ("E702", "json", b"9" * 5000),
    ("E702", "txt", b"1 2 3\n"),
    ("E702", "NOTHING", b""),
]


@pytest.mark.parametrize(("code", "suffix", "data"), FILES_REFUSED, ids=lambda v: repr(v)[:30])
def test_wrong_files_are_explained(folder: Path, code: str, suffix: str, data: bytes) -> None:
    (folder / f"x.{suffix}").write_bytes(data)
    error = failure(lambda: load(f"x.{suffix}"))
    assert error.code == code, error
    assert f"x.{suffix}" in error.diagnostic.message
    assert len(error.diagnostic.message) < 400


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("E701", "nope.npy"),
        ("E701", ""),
        ("E701", "a\0b.npy"),
        ("E701", "a" * 5000 + ".npy"),
        ("E701", "\udcff.npy"),
        ("E701", "folder.npy"),
        ("E701", "pipe.npy"),
        ("E701", "loop.npy"),
        ("E701", "x.csv/y.npy"),
        ("E701", "..\\secret.csv"),
        ("E702", "."),
        ("E704", ".."),
        ("E704", "../secret.csv"),
        ("E704", "folder.npy/../../secret.csv"),
        ("E704", "../missing.csv"),
        ("E704", "/etc/passwd"),
        ("E704", "/proc/self/environ"),
        ("E704", "/dev/zero"),
        ("E704", "../project2/x.csv"),
        ("E704", "out.csv"),
        ("E704", "up/secret.csv"),
        ("E704", "device.npy"),
        ("E208", 3),
        ("E208", None),
        ("E208", ["x.npy"]),
    ],
)
def test_wrong_paths_are_explained(folder: Path, code: str, name: Any) -> None:
    (folder / "folder.npy").mkdir()
    (folder.parent / "project2").mkdir()
    (folder.parent / "project2" / "x.csv").write_text("4242\n")
    os.mkfifo(folder / "pipe.npy")
    (folder / "loop.npy").symlink_to("loop.npy")
    (folder / "out.csv").symlink_to(folder.parent / "secret.csv")
    (folder / "up").symlink_to("..")
    (folder / "device.npy").symlink_to("/dev/zero")
    error = failure(lambda: load(name))
    assert error.code == code, error
    assert "4242" not in str(error)
    assert error.diagnostic.message.isprintable()


def test_words_of_numpy_that_are_not_known() -> None:
    error = _csv_error("x.csv", "delimiter cannot be quote", False)
    assert error.message == "`x.csv` is no table of numbers: delimiter cannot be quote"


def test_devices_are_refused_even_where_allowed(folder: Path) -> None:
    files().allowed = (Path("/dev"),)
    (folder / "device.npy").symlink_to("/dev/zero")
    assert failure(lambda: load("device.npy")).code == "E701"


def test_without_a_folder_nothing_is_read(folder: Path) -> None:
    files().folder = None
    assert failure(lambda: load("x.npy")).code == "E704"


def test_options_are_checked(folder: Path) -> None:
    (folder / "x.npy").write_bytes(npy(np.arange(3)))
    assert failure(lambda: load("x.npy", requires_grad=True)).code == "E306"
    assert failure(lambda: load("x.npy", dtype="float")).code == "E205"
    with pytest.raises(TypeError):
        load("x.npy", allow_pickle=True)  # type: ignore[call-arg]  # refused


def test_limit_on_memory(folder: Path) -> None:
    STATE.max_bytes = 10_000
    big = np.zeros(2000)
    (folder / "x.npy").write_bytes(npy(big))
    (folder / "x.npz").write_bytes(npz(True, a=big))
    (folder / "many.npz").write_bytes(npz(True, **{f"a{i}": big[:300] for i in range(5)}))
    (folder / "x.csv").write_text("1," * 2000 + "1\n")
    (folder / "x.json").write_text(json.dumps([[]] * 1000))
    for name in ("x.npy", "x.npz", "many.npz", "x.csv", "x.json"):
        error = failure(lambda name=name: load(name))
        assert error.code == "E505", name
        assert name in error.diagnostic.message


def test_what_just_fits_is_read(folder: Path) -> None:
    array = np.zeros(300)
    one = npy(array)
    (folder / "x.npy").write_bytes(one)
    (folder / "x.npz").write_bytes(npz(True, a=array, b=array))
    (folder / "x.csv").write_text("1\n" * 299 + "1")
    (folder / "x.json").write_text("1" + " " * 999)
    for name, size in (("npy", len(one)), ("npz", 2 * len(one)), ("csv", 2400), ("json", 1000)):
        STATE.max_bytes = size
        load(f"x.{name}")
        STATE.max_bytes = size - 1
        assert failure(lambda name=name: load(f"x.{name}")).code == "E505", name


def test_files_that_end_early_or_cannot_be_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = npy(ARRAY)
    error = failure(lambda: read_npy("x.npy", io.BytesIO(whole[:-8]), len(whole)))
    assert (error.code, "8 bytes are missing" in error.diagnostic.message) == ("E702", True)

    def broken(*_: Any) -> None:
        raise OSError(5, "Input/output error")

    (folder / "x.npy").write_bytes(whole)
    monkeypatch.setitem(loading._READERS, ".npy", broken)
    error = failure(lambda: load("x.npy"))
    assert (error.code, "input/output error" in error.diagnostic.message.lower()) == ("E701", True)


def test_long_lists_of_members_are_refused(folder: Path) -> None:
    """The list's length in the record of an archive with more than 4 GiB."""
    record = bytearray(76)
    record[:4] = b"PK\6\6"
    record[40:48] = (1 << 40).to_bytes(8, "little")
    (folder / "x.npz").write_bytes(bytes(record) + b"PK\5\6" + bytes(18))
    error = failure(lambda: load("x.npz"))
    assert (error.code, str(1 << 40) in error.diagnostic.message) == ("E505", True)


@pytest.mark.parametrize("size", [8 << 20, (8 << 20) + 1])
def test_the_longest_list_of_members(folder: Path, size: int) -> None:
    end = b"PK\5\6" + bytes(8) + size.to_bytes(4, "little") + bytes(6)
    (folder / "x.npz").write_bytes(end)
    assert failure(lambda: load("x.npz")).code == ("E702" if size == 8 << 20 else "E505")


def test_an_archive_ends_with_a_comment(folder: Path) -> None:
    with zipfile.ZipFile(folder / "x.npz", "w") as file:
        file.writestr("a.npy", npy(ARRAY))
        file.comment = b"c" * 65_535
    assert np.array_equal(load("x.npz")["a"].numpy(), ARRAY)


def test_the_largest_unsigned_integer(folder: Path) -> None:
    for name, most in (("x", 2**63 - 1), ("y", 2**63)):
        (folder / f"{name}.npy").write_bytes(npy(np.array([1, most], np.uint64)))
    assert load("x.npy").numpy().tolist() == [1, 2**63 - 1]
    assert failure(lambda: load("y.npy")).code == "E702"


def test_arrays_have_64_dims_at_most(folder: Path) -> None:
    for dims in (64, 65):
        (folder / f"{dims}.npy").write_bytes(header(described(str((1,) * dims)), bytes(8)))
    assert load("64.npy").shape == (1,) * 64
    assert failure(lambda: load("65.npy")).code == "E702"


def test_the_longest_header(folder: Path) -> None:
    text = described("(1,)").strip()
    for size in (10_000, 10_001):
        (folder / f"{size}.npy").write_bytes(header(text.ljust(size - 1) + "\n", bytes(8)))
    assert load("10000.npy").shape == (1,)
    assert failure(lambda: load("10001.npy")).code == "E702"


def test_how_many_bytes_a_shape_can_have(folder: Path) -> None:
    for length, words in ((2**62 - 1, "is cut off"), (2**62, "claims the impossible shape")):
        (folder / "x.npy").write_bytes(header(described(f"({length},)", "'|i1'"), bytes(8)))
        assert words in failure(lambda: load("x.npy")).message


def test_endless_rows_are_refused(folder: Path) -> None:
    with (folder / "x.csv").open("wb") as file:
        file.write(b"1" * (33 << 20))
    assert failure(lambda: load("x.csv")).code == "E505"


SEEDS = {
    "npy": npy(ARRAY),
    "npz": npz(True, a=ARRAY, b=np.arange(4)),
    "csv": b"a,b\n1,2\n3,4.5\n",
    "json": b'{"a": [[1, 2.5], [3, 4]], "b": true}',
}


@given(
    suffix=st.sampled_from(sorted(SEEDS)),
    changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=6),
    cut=st.integers(0, 600),
    header_row=st.booleans(),
)
def test_damaged_files_only_raise_diagnostics(
    tmp_path_factory: pytest.TempPathFactory,
    suffix: str,
    changes: list[tuple[int, int]],
    cut: int,
    header_row: bool,
) -> None:
    data = bytearray(SEEDS[suffix])
    for place, value in changes:
        data[place % len(data)] = value
    path = tmp_path_factory.mktemp("damaged") / f"x.{suffix}"
    path.write_bytes(bytes(data[:cut] if cut < 400 else data))
    files().folder = path.parent
    try:
        load(path.name, header=header_row)
    except AutodiffError as error:
        assert path.name in error.diagnostic.message
    finally:
        files().folder = None
        READ.clear()

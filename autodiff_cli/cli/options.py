"""The options of commands as data: one table drives the quick parser, click, help and completion.

The quick parser understands every correct command line; it answers None for anything else, and
click then says what is wrong. Both give the same values (a test compares them).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..defaults import CHUNK, MAX_DEPTH, MAX_ELEMENTS, MAX_MEMORY, MAX_STEPS, PRECISION
from ..suggest import suggest

if TYPE_CHECKING:
    from .streams import Environment


class Option(NamedTuple):
    """One option. `convert` makes the value of a text, or raises ValueError with what is wrong;
    `repeat` collects a tuple; without `metavar` it is a switch."""

    flags: tuple[str, ...]
    key: str
    help: str
    metavar: str = ""
    convert: Callable[[str], Any] = str
    default: Any = None
    repeat: bool = False

    @property
    def joined(self) -> bool:
        """Whether each value is several words between commas."""
        return self.metavar.endswith(",...")

    @property
    def start(self) -> Any:
        """The value when the option is not given."""
        return () if self.repeat else (self.default if self.metavar else False)


class Command(NamedTuple):
    """One command; `arguments` are the key and metavar of all words that are no options."""

    name: str
    options: Sequence[Option]
    arguments: tuple[str, str]
    call: Callable[[dict[str, Any], list[str], Environment], int]
    description: str
    examples: str


def choice(*words: str) -> Callable[[str], str]:
    """One of a few words."""

    def convert(text: str) -> str:
        if text in words:
            return text
        raise ValueError(f"{text!r} is not one of {', '.join(words)}{_meant(text, words)}")

    convert.words = words  # type: ignore[attr-defined]  # completion looks there
    return convert


def words_of(*words: str) -> Callable[[str], tuple[str, ...]]:
    """A comma list of a few words."""

    one = choice(*words)

    def convert(text: str) -> tuple[str, ...]:
        return tuple(map(one, names(text)))

    convert.words, convert.several = words, True  # type: ignore[attr-defined]  # for completion
    return convert


_PYTORCH = {"float": "float32", "double": "float64", "half": "float16"}  # its other names of dtypes


def _meant(text: str, words: Sequence[str]) -> str:
    close = [_PYTORCH[text]] if _PYTORCH.get(text) in words else suggest(text, words, 1)
    return f"; did you mean {close[0]}?" if close else ""


def names(text: str) -> tuple[str, ...]:
    """A comma list of names or globs."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise ValueError("give at least one name")
    return found


def whole(low: int, high: int) -> Callable[[str], int]:
    """A whole number between two bounds."""

    def convert(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ValueError(f"{text!r} is not a whole number") from None
        if not low <= number <= high:
            raise ValueError(f"{text} is not between {low} and {high}")
        return number

    return convert


_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def memory(text: str) -> int:
    """An amount of memory: `800M`, `8G`, `1.5GiB`, or a number of bytes."""
    match = re.fullmatch(
        r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([kmgt]?)(?:i?b)?", text.strip().lower()
    )
    if match is None:
        raise ValueError(f"{text!r} is not an amount of memory such as 800M or 8G")
    size = int(float(match[1]) * (1 << _UNITS[match[2]]))
    if not 1 << 10 <= size <= 1 << 50:
        raise ValueError(f"{text} is not between 1K and 1024T")
    return size


def seconds(text: str) -> float:
    """A positive number of seconds."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number of seconds") from None
    if not 0 < value <= 1e9:
        raise ValueError(f"{text} is not a number of seconds between 0 and 1e9")
    return value


def define(text: str) -> tuple[str, str, bool]:
    """`NAME=VALUE` or `+NAME=VALUE` as `(name, value, added)`."""
    head, equals, value = text.partition("=")
    added = head.startswith("+")
    name = head[1:].strip() if added else head.strip()
    if not equals or not value.strip():
        raise ValueError(f"{text!r} has no value; write NAME=VALUE, for example x=2.5")
    if not name.isidentifier():
        raise ValueError(f"{name!r} is not a name; write NAME=VALUE, for example x=2.5")
    return name, value, added


def folder(text: str) -> str:
    """An existing folder."""
    import os

    if not os.path.isdir(text):
        raise ValueError(f"{text!r} is not a folder")
    return text


def starts(options: Sequence[Option]) -> dict[str, Any]:
    """What options are where they are not given, by key."""
    return {option.key: option.start for option in options}


def parse(
    argv: Sequence[str], options: Sequence[Option]
) -> tuple[dict[str, Any], list[str]] | None:
    """Values by key and the other arguments, or None when anything at all is unusual."""
    by_flag = {flag: option for option in options for flag in option.flags}
    values = starts(options)
    others: list[str] = []
    pending = list(reversed(argv))
    while pending:
        word = pending.pop()
        if word == "--":
            others += reversed(pending)
            break
        if word == "-" or not word.startswith("-"):
            others.append(word)
            continue
        option = by_flag.get(word)
        value: str | None = None
        if option is None:
            if word.startswith("--"):
                flag, equals, value = word.partition("=")
                option = by_flag.get(flag) if equals else None
            else:
                option, value = by_flag.get(word[:2]), word[2:]
                if option is not None and not option.metavar:  # switches in a row: -qv
                    pending.append("-" + word[2:])
                    value = None
            if option is None or (value is not None and not option.metavar):
                return None
        if not option.metavar:
            values[option.key] = True
            continue
        if value is None:
            if not pending:
                return None
            value = pending.pop()
        try:
            converted = option.convert(value)
        except ValueError:
            return None
        if option.repeat:
            converted = values[option.key] + (converted if option.joined else (converted,))
        values[option.key] = converted
    return values, others


def form_option(*words: str, more: str = "") -> Option:
    """The one option for what the output is written as, in every spelling."""
    about = f"The form of the output: auto, {', '.join(words)}.{more}"
    return Option(("-f", "--to", "--format"), "format", about, "FORM",
                  choice("auto", *words), "auto")  # fmt: skip


FORMAT = form_option("rich", "plain", "json")

# The options of `run`; other commands pick from these so that one spelling means one thing.
RUN_OPTIONS = (
    Option(("-e", "--expr"), "expr", "Program text; several are lines, after those of FILE.",
           "CODE", repeat=True),
    Option(("-D", "--define"), "define",
           "Override a top-level assignment; VALUE is an expression, @file.npy, @file.npz:key, "
           "@file.csv, @file.json or @- (JSON from stdin). +NAME=VALUE adds a name.",
           "NAME=VALUE", define, repeat=True),
    Option(("--of", "--loss"), "loss", "What is differentiated.", "NAME"),
    Option(("--wrt",), "wrt", "With respect to what: names or globs.", "NAME,...", names,
           repeat=True),
    Option(("--grad-output",), "grad_output", "The upstream gradient, for a loss that is not a "
           "single number.", "EXPR"),
    Option(("--dtype",), "dtype", "The dtype of plain numbers: float64 or float32.", "DTYPE",
           choice("float64", "float32", "float16")),
    Option(("--no-backward",), "no_backward", "Evaluate only."),
    Option(("--nan",), "nan", "What a NaN or an infinity is: warn, error or ignore.", "ACTION",
           choice("warn", "error", "ignore"), "warn"),
    FORMAT,
    Option(("-o", "--out"), "out", "Write the results to FILE: .json, .npz, .npy, .csv, .txt; "
           "- is stdout.", "FILE"),
    Option(("--only",), "only", "Sections to print: values, graph, gradients.", "PART,...",
           words_of("values", "graph", "gradients"), repeat=True),
    Option(("--show",), "show", "Names to print, as globs.", "GLOB,...", names, repeat=True),
    Option(("--all",), "all", "Print every name and the whole graph."),
    Option(("--heat",), "heat", "Print only a picture of the magnitudes in NAME, or NAME.grad.",
           "NAME,...", names, repeat=True),
    Option(("--plot",), "plot", "Draw values and gradients as images, and the loss over steps as a "
           "curve: to -o FILE.png or .svg, else on the terminal."),
    Option(("--profile",), "profile", "Measure time and bytes of each expression, forward and "
           "backward."),
    Option(("--plan",), "plan", "Show how the last big evaluation was run: groups, tiles, threads, "
           "memory; with -v the code."),
    Option(("--asserts",), "asserts", "Print the results as assertions."),
    Option(("-p", "--precision"), "precision", "Significant digits in tables.", "N",
           whole(1, 17), PRECISION),
    Option(("--max-elements",), "max_elements", "Larger tensors are summed up in tables.", "N",
           whole(0, 10**9), MAX_ELEMENTS),
    Option(("--sci",), "sci", "Numbers in scientific notation."),
    Option(("--color", "--colour"), "color", "Colours: auto, always or never.", "WHEN",
           choice("auto", "always", "never"), "auto"),
    Option(("--diagnostics",), "diagnostics", "The form of errors: full, concise, json or "
           "github.", "FORM", choice("full", "concise", "json", "github"), "full"),
    Option(("--engine",), "engine", "What computes: numpy, or dask for more rows than fit into "
           "memory (@file.npy, @*.npy, @file.zarr, @file.h5, @file.csv, @file.parquet).",
           "NAME", choice("numpy", "dask"), "numpy"),
    Option(("--scheduler",), "scheduler", "A running cluster of Dask; else one is started here.",
           "ADDRESS"),
    Option(("--workers",), "workers", "Processes of the cluster that is started.", "N",
           whole(1, 4096)),
    Option(("--chunk",), "chunk", "Bytes of a block of rows.", "SIZE", memory, CHUNK),
    Option(("--max-memory",), "max_memory", "Most memory that a program may take: 8G.", "SIZE",
           memory, MAX_MEMORY),
    Option(("--max-steps",), "max_steps", "Most steps of a program.", "N", whole(1, 10**15),
           MAX_STEPS),
    Option(("--max-depth",), "max_depth", "Deepest recursion of functions.", "N",
           whole(1, 100_000), MAX_DEPTH),
    Option(("--allow-read",), "allow_read", "A further folder that load() may read.", "DIR",
           folder, repeat=True),
    Option(("--timeout",), "timeout", "Stop after so many seconds.", "SECONDS", seconds),
    Option(("-w", "--watch"), "watch", "Run again when a FILE changes, or data that it read."),
    Option(("--fix",), "fix", "Correct slips in FILE (`**` for `^`, misspelt names); show what "
           "else would help."),
    Option(("-q", "--quiet"), "quiet", "Nothing but data and errors."),
    Option(("-v", "--verbose"), "verbose", "Say on stderr what was done."),
    Option(("--debug",), "debug", "Show Python's traceback of an internal error."),
)  # fmt: skip


# Sections of the help: what an option that stands in none of them is about is the program.
SECTIONS = {
    "Output": (
        "format", "out", "only", "show", "all", "heat", "plot", "asserts",
        "precision", "max_elements", "sci", "color", "diagnostics", "quiet", "verbose",
    ),
    "Engine": (
        "engine", "scheduler", "workers", "chunk", "profile", "plan", "max_memory", "max_steps",
        "max_depth", "allow_read", "timeout", "debug",
    ),
}  # fmt: skip


def shared(*keys: str) -> tuple[Option, ...]:
    """The options of `run` that a command has too: these, and what bounds and shows every run."""
    everywhere = (
        "expr", "define", "dtype", "loss", "color", "diagnostics", "max_memory", "max_steps",
        "max_depth", "allow_read", "timeout", "quiet", "verbose", "debug",
    )  # fmt: skip
    return tuple(option for option in RUN_OPTIONS if option.key in (*everywhere, *keys))


def chosen(values: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The values of these options, as keywords for settings of the same names."""
    return {key: values[key] for key in keys}


def only(*keys: str) -> tuple[Option, ...]:
    """These options of `run`."""
    return tuple(option for option in RUN_OPTIONS if option.key in keys)

"""Native programs with options, each with the PyTorch program that gives the expected numbers.

Run it with `python -m tests.oracles.native` to record them. A case is text: the native program, and
after a line `---` the PyTorch program; lines that begin with `#:` are options of the run
(`#: -D x=3`, `#: --wrt a,b`, `#: file data.csv 1,2;3,4`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from tests.oracles.programs import record

TEXT = Path(__file__).parent / "snippets" / "native.cases"
FIXTURE = Path(__file__).parents[1] / "fixtures" / "native.json"


def cases() -> list[dict[str, Any]]:
    """Title, options, files and both programs of every case."""
    found = []
    for text in TEXT.read_text("utf-8").split("=====\n"):
        native, _, expected = text.partition("---\n")
        options: dict[str, Any] = {"defines": []}
        files: dict[str, str] = {}
        for line in native.splitlines():
            if line.startswith("#: "):
                add_option(options, files, line[3:])
        title = native.partition("\n")[0].lstrip("# ")
        found.append(
            {"id": title, "source": native, "torch": expected, "options": options, "files": files}
        )
    return found


def add_option(options: dict[str, Any], files: dict[str, str], line: str) -> None:
    word, _, rest = line.partition(" ")
    if word == "-D":
        name, _, value = rest.partition("=")
        options["defines"].append([name.lstrip("+"), value, name.startswith("+")])
    elif word == "file":
        name, _, content = rest.partition(" ")
        files[name] = content.replace(";", "\n") + "\n"
    elif word == "--wrt":
        options["wrt"] = rest.split(",")
    else:
        options[word.lstrip("-").replace("-", "_")] = rest


def outcome(case: dict[str, Any]) -> dict[str, Any]:
    """What PyTorch computes; its program says `objective = "name"` when that is not `loss`."""
    single = case["options"].get("dtype") == "float32"
    torch.set_default_dtype(torch.float32 if single else torch.float64)
    names: dict[str, Any] = {"torch": torch, "F": F, "T": leaf}
    exec(compile(case["torch"], case["id"], "exec"), names)
    tensors = {k: record(v) for k, v in names.items() if isinstance(v, torch.Tensor)}
    return {"loss": names.get("objective", "loss"), "tensors": tensors}


def leaf(values: Any) -> torch.Tensor:
    """A leaf of the default dtype, as a native literal is."""
    return torch.tensor(values, dtype=torch.get_default_dtype(), requires_grad=True)


def main() -> None:
    """Write the fixture."""
    rows = [json.dumps({**case, **outcome(case)}, allow_nan=False) for case in cases()]
    body = ",\n".join(rows)
    FIXTURE.write_text(f"[\n{body}\n]\n", encoding="utf-8")
    print(len(rows), "programs")


if __name__ == "__main__":
    main()

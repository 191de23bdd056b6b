"""Write tests/fixtures/modules.json: what programs with modules and optimizers do under PyTorch.

Run it with `python -m tests.oracles.modules`; the programs are in `modules/`.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.oracles.programs import outcome

FOLDER = Path(__file__).parent / "modules"
FIXTURE = Path(__file__).parents[1] / "fixtures" / "modules.json"


def main() -> None:
    """Write the fixture."""
    cases = []
    for path in sorted(FOLDER.glob("*.txt")):
        for text in path.read_text("utf-8").split("=====\n"):
            title = text.partition("\n")[0].lstrip("# ")
            case = {"id": f"{path.stem}: {title}", "source": text, **outcome(text)}
            if (case["error"] is not None) is not (path.stem == "errors"):
                print("unexpected:", case["id"], case["error"])
            cases.append(case)
    rows = ",\n".join(json.dumps(case, allow_nan=False) for case in cases)
    FIXTURE.write_text(f"[\n{rows}\n]\n", encoding="utf-8")
    print(len(cases), "programs")


if __name__ == "__main__":
    main()

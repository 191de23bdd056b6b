"""`python -m autodiff_cli` is the same command as `autodiff`."""

from __future__ import annotations

import sys

from autodiff_cli.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

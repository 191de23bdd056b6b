"""SciPy's packages in the command's process: the same functions, without the rest around them."""

from __future__ import annotations

import subprocess
import sys

LIGHT = """
import sys
from autodiff_cli.cli.light_scipy import prepare
prepare()
from scipy.special import psi, gammainc
assert psi(1.0) == -0.5772156649015329, psi(1.0)
assert "scipy.special._support_alternative_backends" not in sys.modules
held = dict(vars(sys.modules["scipy.special"]))
from scipy.special import zeta, logsumexp
assert zeta(2.0, 1.0) == 1.6449340668482266, zeta(2.0, 1.0)
import scipy.special, numpy
assert scipy.special.psi is psi and scipy.special.gammainc is gammainc
light = vars(sys.modules["scipy.special._ufuncs"])
own = [n for n, f in vars(scipy.special).items() if isinstance(f, numpy.ufunc)]
other = [n for n in own if n in light and light[n] is not vars(scipy.special)[n]]
print(len(own) > 150, other)
"""
LINEAR = """
import sys
from autodiff_cli.cli.light_scipy import prepare
prepare()
from scipy.linalg import _flapack
assert "scipy.linalg._decomp" not in sys.modules
from scipy.linalg import expm
import scipy.linalg
assert scipy.linalg.lapack._flapack is _flapack
print(expm([[0.0]]), scipy.linalg.lapack.dgetrf is _flapack.dgetrf)
"""


def test_it_has_what_the_package_has() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True)
    assert done.stdout == "True []\n", done.stderr


def test_matrices_too() -> None:
    done = subprocess.run([sys.executable, "-c", LINEAR], capture_output=True, text=True)
    assert done.stdout == "[[1.]] True\n", done.stderr


def test_the_library_leaves_its_host_alone() -> None:
    text = "import autodiff_cli, sys; print('scipy.special' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.stdout == "False\n"

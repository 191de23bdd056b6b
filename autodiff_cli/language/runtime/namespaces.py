"""Which modules programs may import or name, and the paths that stand for them here."""

from __future__ import annotations

TORCH_VERSION = "2.13.0+cpu"  # of the PyTorch whose numbers these are

PREDEFINED: dict[str, str] = {
    "torch": "",
    "F": "nn.functional",
    "nn": "nn",
    "np": "np",
    "numpy": "np",
    "math": "math",
    "linalg": "linalg",
    "special": "special",
    "autograd": "autograd",
    "optim": "optim",
    "func": "func",
}

# Imported out of habit: nothing of them is there.
UNUSED = """
    pdb json pickle glob shutil logging inspect traceback platform tempfile csv datetime textwrap
    pprint heapq bisect statistics fractions numbers types threading multiprocessing urllib
    urllib.request zipfile tarfile hashlib re struct
"""

_PYTHON = """
    functools itertools operator dataclasses enum contextlib collections collections.abc time
    random warnings abc typing os os.path sys argparse io gc timeit string unicodedata importlib
    importlib.metadata pathlib
"""
MODULES: dict[str, str] = {
    "torch": "",
    "numpy": "np",
    "math": "math",
    "torch.nn": "nn",
    "torch.nn.functional": "nn.functional",
    "torch.functional": "",
    "torch.nn.init": "nn.init",
    "torch.nn.utils": "nn.utils",
    "torch.linalg": "linalg",
    "torch.special": "special",
    "torch.autograd": "autograd",
    "torch.autograd.functional": "autograd.functional",
    "torch.func": "func",
    "torch.optim": "optim",
    "torch.optim.lr_scheduler": "optim.lr_scheduler",
    "torch.distributions": "distributions",
    "torch.distributions.kl": "distributions.kl",
    "torch.distributions.transforms": "distributions.transforms",
    "torch.masked": "masked",
    "torch.random": "random",
    "torch.autograd.function": "autograd",
    "torch.autograd.forward_ad": "autograd.forward_ad",
    "torch.autograd.graph": "autograd.graph",
    "torch.autograd.gradcheck": "autograd",
    "torch.autograd.variable": "autograd",
    "torch.nn.parameter": "nn.parameter",
    "torch.nn.modules": "nn",
    "torch.nn.utils.rnn": "nn.utils.rnn",
    "torch.nn.utils.prune": "nn.utils.prune",
    "torch.nn.utils.parametrize": "nn.utils.parametrize",
    "torch.nn.utils.parametrizations": "nn.utils.parametrizations",
    "torch.utils": "utils",
    "torch.utils.data": "utils.data",
    "torch.utils.checkpoint": "utils.checkpoint",
    "torch.amp": "amp",
    "torch.cuda": "cuda",
    "torch.backends": "backends",
    "torch.backends.cudnn": "backends.cudnn",
    "torch.optim.optimizer": "optim",
    "torch.optim.swa_utils": "optim.swa_utils",
    "numpy.linalg": "np.linalg",
    "functorch": "func",
    "copy": "python.copy",
    **{name: f"python.{name}" for name in (_PYTHON + UNUSED).split()},
}

NAMESPACES = frozenset(MODULES.values()) | {
    "accelerator",
    "np.random",
    "autograd.function",
    "backends.cudnn",
    "backends.mps",
    "cuda.amp",
    "mps",
    "version",
}

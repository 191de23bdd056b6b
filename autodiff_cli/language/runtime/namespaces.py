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
_TORCH = """
    nn nn.functional nn.init nn.utils linalg special autograd autograd.functional func optim
    optim.lr_scheduler distributions distributions.constraints distributions.kl
    distributions.transforms masked random
    autograd.forward_ad autograd.graph nn.parameter nn.utils.rnn nn.utils.prune
    nn.utils.parametrize nn.utils.parametrizations nn.utils.fusion nn.grad utils utils.data
    utils.checkpoint amp
    cuda backends backends.cudnn backends.cuda backends.cuda.matmul optim.swa_utils testing
"""
MODULES: dict[str, str] = {
    "torch": "",
    "numpy": "np",
    "math": "math",
    **{f"torch.{path}": path for path in _TORCH.split()},
    "torch.functional": "",
    "torch.autograd.function": "autograd",
    "torch.autograd.gradcheck": "autograd",
    "torch.autograd.variable": "autograd",
    "torch.nn.modules": "nn.modules",
    "torch.nn.modules.utils": "nn.modules",
    "torch.optim.optimizer": "optim",
    "numpy.linalg": "np.linalg",
    "functorch": "func",
    **dict.fromkeys(["tqdm", "tqdm.auto", "tqdm.autonotebook", "tqdm.notebook"], "python.tqdm"),
    **{name: f"python.{name}" for name in f"copy {_PYTHON} {UNUSED}".split()},
}

_OTHERS = """
    accelerator np.random autograd.function backends.cudnn backends.mps cuda.amp mps version
    nn.functional.grad
"""
NAMESPACES = frozenset(MODULES.values()) | set(_OTHERS.split())

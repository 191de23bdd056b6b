"""What stands around computing below `torch.`: anomaly mode, autocast, `compile`,
switches of devices and threads. Here most of it has nothing to do, and says so by doing nothing;
what would change numbers is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.tensor import Tensor, Unkept
from ...errors import fault
from ...graph.node import Node
from ...graph.op import leaf
from ...graph.params import check_device
from ...graph.registry import F
from ...graph.state import STATE, grad_mode, packs
from ..python.builtins import type_of
from ..python.saving import load, save
from ..random.generators import default_stream
from ..runtime.attributes import METHODS
from ..runtime.context_managers import Manager
from ..runtime.namespaces import TORCH_VERSION
from ..values.exceptions import EXCEPTIONS
from ..values.formatting import represent
from ..values.functions import call_value
from ..values.operations import items_of, truth
from ..values.python_operators import python_binary
from ..values.user_classes import FUNCTION, Object, UserClass, library_class
from ..values.values import Builtin, Method, TypeName, builtins_of
from .saved_hooks import SavedHooks, disabled

# -- modes ----------------------------------------------------------------------------------------


def _nothing(name: str) -> Callable[..., Manager]:
    """A manager without effect, whatever it is given."""
    return lambda *args, **kwargs: Manager(name)


def _anomaly(mode: Any, check_nan: Any = True) -> Manager:
    """From now on, or in a `with`, a backward stops at the first NaN that a function gives."""
    before = STATE.anomaly
    wanted = STATE.anomaly = truth(mode) and truth(check_nan)
    return Manager(
        "set_detect_anomaly",
        lambda: setattr(STATE, "anomaly", wanted),
        lambda error: setattr(STATE, "anomaly", before),
    )


def _inside(name: str, setting: str, wanted: bool) -> Manager:
    """A manager inside of which a setting of the run is the one that is wanted."""
    kept: list[Any] = []

    def enter() -> None:
        kept.append(getattr(STATE, setting))
        setattr(STATE, setting, wanted)

    return Manager(name, enter, lambda error: setattr(STATE, setting, kept.pop()))


def _detect_anomaly(check_nan: Any = True) -> Manager:
    return _inside("detect_anomaly", "anomaly", truth(check_nan))


def _autocast(
    device_type: Any, dtype: Any = None, enabled: Any = True, cache_enabled: Any = None
) -> Manager:
    """Without CUDA autocast to it is off; on the CPU it would change the numbers."""
    if truth(enabled) and device_type == "cpu":
        raise fault("E203 autocast-cpu-computes-bfloat16")
    return Manager("autocast")


def _hooked(self: Object) -> None:
    STATE.packing.append(SavedHooks(self.fields["pack_hook"], self.fields["unpack_hook"]))


def _unhooked() -> None:
    if packs():
        STATE.packing.pop()


HOOKS = library_class(
    "saved_tensors_hooks",
    [],
    {
        "__init__": lambda self, pack_hook, unpack_hook: self.fields.update(
            pack_hook=pack_hook, unpack_hook=unpack_hook
        ),
        "__enter__": _hooked,
        "__exit__": lambda self, *error: _unhooked(),
    },
)


def _on_cpu(pin_memory: Any = False, device_type: Any = "cuda") -> Any:
    """`save_on_cpu()`: what is saved is there already."""
    same = Builtin("save_on_cpu", lambda value: value)
    return HOOKS(same, same)


def _once(function: Any) -> Builtin:
    """`once_differentiable`: what the backward computes has no derivative, and says so."""

    def run(*args: Any, **kwargs: Any) -> Any:
        with grad_mode(False):
            found = call_value(function, list(args), kwargs)
        if not STATE.grad or not any(isinstance(x, Tensor) and x.requires_grad for x in args):
            return found
        parts = found if isinstance(found, tuple) else (found,)
        refusing = tuple(part if part is None else Tensor(_refusing(part.node)) for part in parts)
        return refusing if isinstance(found, tuple) else refusing[0]

    return Method(getattr(function, "name", "backward"), run)


def _refusing(node: Node) -> Node:
    words = "trying to differentiate twice a function that was marked with @once_differentiable"
    help = "leave `@once_differentiable` out where the backward is made of tensors alone"
    return F.differentiable_once(leaf(F.detach(node), Unkept()), words, help)


_INPLACE = library_class("InplaceFunction", [FUNCTION], {})


# -- scaling --------------------------------------------------------------------------------------


def _scaled_step(self: Object, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
    return call_value(optimizer.get_attribute("step"), list(args), kwargs)


SCALER = library_class(
    "GradScaler",
    [],
    {
        "__init__": lambda self, *args, **kwargs: None,
        "scale": lambda self, outputs: outputs,
        "step": _scaled_step,
        "update": lambda self, new_scale=None: None,
        "unscale_": lambda self, optimizer: None,
        "get_scale": lambda self: 1.0,
        "is_enabled": lambda self: False,
        "state_dict": lambda self: {},
        "load_state_dict": lambda self, state_dict: None,
    },
)


# -- switches -------------------------------------------------------------------------------------


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


def _can_cast(source: Any, target: Any) -> bool:
    order = {"b": 0, "u": 1, "i": 1, "f": 2}
    return order[np.dtype(source).kind] <= order[np.dtype(target).kind]


def _fork(*args: Any, **kwargs: Any) -> Manager:
    """`torch.random.fork_rng()`: draws inside leave the stream as it was."""
    kept: list[Any] = []

    def leave(error: Any) -> None:
        default_stream().set_state(kept.pop())

    return Manager("fork_rng", lambda: kept.append(default_stream().get_state()), leave)


_NO = """
    cuda.is_available backends.mps.is_available backends.cudnn.is_available mps.is_available
    accelerator.is_available are_deterministic_algorithms_enabled is_autocast_enabled is_complex
    set_flush_denormal
"""
_NOTHING_TO_DO = """
    cuda.manual_seed cuda.manual_seed_all cuda.empty_cache cuda.synchronize backends.cudnn.version
    set_num_interop_threads set_float32_matmul_precision set_warn_always
    accelerator.current_accelerator
"""


def _typename(value: Any) -> str:
    if isinstance(value, Tensor):
        return METHODS["type"](value)
    return represent(value if isinstance(value, UserClass | TypeName) else type_of(value))[8:-2]


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "utils.checkpoint.set_checkpoint_early_stop": lambda enable: _inside(
        "set_checkpoint_early_stop", "early_stop", truth(enable)
    ),
    "autograd.set_detect_anomaly": _anomaly,
    "autograd.detect_anomaly": _detect_anomaly,
    "autograd.anomaly_mode.set_detect_anomaly": _anomaly,
    "autograd.anomaly_mode.detect_anomaly": _detect_anomaly,
    "autograd.graph.save_on_cpu": _on_cpu,
    "autograd.graph.disable_saved_tensors_hooks": disabled,
    "autograd.once_differentiable": _once,
    "autograd.function.once_differentiable": _once,
    "autograd.profiler.record_function": _nothing("record_function"),
    "autograd.profiler.profile": _nothing("profile"),
    "autocast": _autocast,
    "amp.autocast": _autocast,
    "amp.custom_fwd": lambda function=None, **kwargs: function,
    "cuda.amp.autocast": lambda enabled=True, **kwargs: Manager("autocast"),
    "compile": lambda model=None, **options: (
        Builtin("compile", lambda function: function) if model is None else model
    ),
    "random.fork_rng": _fork,
    "cuda.device_count": _constant(0),
    **dict.fromkeys(_NO.split(), _constant(False)),
    **dict.fromkeys(_NOTHING_TO_DO.split(), _constant(None)),
    "is_inference_mode_enabled": lambda: STATE.inference,
    "is_inference": lambda tensor: tensor.inferred,
    "is_anomaly_enabled": lambda: STATE.anomaly,
    "can_cast": _can_cast,
    "get_num_threads": _constant(1),
    "get_float32_matmul_precision": _constant("highest"),
    "set_default_device": lambda device: check_device(device),
    "typename": _typename,
}

# Of `torch.nn.modules.utils`.
_REPEATS = ("_single", "_pair", "_triple", "_quadruple")


def _repeated(name: str, n: int) -> Builtin:
    """`_pair(3)` is `(3, 3)`; what has items is a tuple of them."""
    single = (int, float, type(None))

    def run(x: Any) -> tuple[Any, ...]:
        return python_binary("*", (x,), n) if isinstance(x, single) else tuple(items_of(x))

    return Builtin(name, run)


SERVICES: dict[str, Any] = {
    **builtins_of(_FUNCTIONS),
    "save": Builtin("save", save),
    "load": Builtin("load", load),
    "linalg.LinAlgError": EXCEPTIONS["_LinAlgError"],
    "autograd.GradcheckError": EXCEPTIONS["GradcheckError"],
    "autograd.Function": FUNCTION,
    "autograd.function.Function": FUNCTION,
    "autograd.InplaceFunction": _INPLACE,
    "autograd.function.InplaceFunction": _INPLACE,
    "autograd.graph.saved_tensors_hooks": HOOKS,
    "amp.GradScaler": SCALER,
    "cuda.amp.GradScaler": SCALER,
    "__version__": TORCH_VERSION,
    "version.__version__": TORCH_VERSION,
    "backends.cudnn.deterministic": False,
    "backends.cudnn.benchmark": False,
    "backends.cudnn.enabled": True,
    "backends.cudnn.allow_tf32": True,
    "backends.cuda.matmul.allow_tf32": False,
    **{f"nn.{name}": _repeated(name, n) for n, name in enumerate(_REPEATS, 1)},
    "nn._ntuple": Builtin("_ntuple", lambda n, name="parse": _repeated(name, n)),
}

# What may be assigned below `torch.backends`, without effect.
ASSIGNABLE = frozenset(path for path in SERVICES if path.startswith("backends.cu"))

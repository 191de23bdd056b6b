"""Generators of random numbers as programs see them: `torch.Generator`, seeds and states.

A state is the uint8 tensor that PyTorch gives, byte for byte.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.random.stream import Generator, GeneratorState
from ...autograd.tensor import Tensor, new_leaf
from ...errors import fault
from ...graph.dtypes import UINT8
from ...graph.params import check_device
from ...graph.state import STATE
from ..values.dialect import kind_of
from ..values.values import CPU, Builtin, TypeName

# seed, words left, seeded, next word, 624 words of 64 bits, three doubles of which the second is
# the kept normal, whether there is one, an unused float32 normal.
_STATE = struct.Struct("<QiiQ4992s3diixxxxxxxx")
_WORDS = 624


class Stream:
    """A generator that is not PyTorch's: Python's own, or NumPy's. `draws` counts how often it was
    asked."""

    __slots__ = ("_get", "_own", "_set", "draws")

    def __init__(self, own: Any, get: Callable[[], Any], put: Callable[[Any], None]):
        self._own = own
        self._get = get
        self._set = put
        self.draws = 0

    @property
    def own(self) -> Any:
        """The generator, for a draw."""
        self.draws += 1
        return self._own

    def state(self) -> tuple[int, Any]:
        """Where it stands."""
        return self.draws, self._get()

    def put_back(self, state: tuple[int, Any]) -> None:
        """Let it stand there again."""
        self.draws = state[0]
        self._set(state[1])


def stream(name: str, make: Callable[[], Stream]) -> Stream:
    """One of the program's streams, made when it is first drawn from."""
    found: Stream | None = STATE.streams.get(name)
    if found is None:
        found = STATE.streams[name] = make()
    return found


class RandomGenerator:
    """A `torch.Generator`."""

    __slots__ = ("own",)

    def __init__(self, own: Generator | None):
        self.own = own

    def own_type(self) -> TypeName:
        return GENERATOR_TYPE

    def describe(self) -> str:
        return f"<torch._C.Generator object at {id(self):#x}>"

    @property
    def stream(self) -> Generator:
        return default_stream() if self.own is None else self.own

    def get_attribute(self, name: str) -> Any:
        if name == "device":
            return CPU
        method = _METHODS.get(name)
        if method is None:
            raise fault("E207 generator-no-attribute", ", ".join(_METHODS), name=name)
        return Builtin(name, lambda *args: method(self, *args))


DEFAULT = RandomGenerator(None)


def default_stream() -> Generator:
    """The generator of draws that name none, made on first use."""
    if STATE.default_generator is None:
        STATE.default_generator = Generator(*STATE.seed)
    return STATE.default_generator


def stream_of(generator: Any) -> Generator:
    """The stream that `generator=` means."""
    if generator is None:
        return default_stream()
    if isinstance(generator, RandomGenerator):
        return generator.stream
    raise fault("E205 generator-torch-generator", kind_of(generator))


def _seeded(generator: RandomGenerator, seed: Any) -> RandomGenerator:
    """`generator.manual_seed(seed)`, which unlike `torch.manual_seed` makes no int of a seed."""
    if seed is None or isinstance(seed, bool | float | str | list | tuple):
        raise fault("E205 seed-of-generator", type(seed).__name__)
    return _manual_seed(generator, seed)


def _manual_seed(generator: RandomGenerator, seed: Any) -> RandomGenerator:
    generator.stream.manual_seed(_seed_number(seed))
    return generator


def _seed_number(seed: Any) -> Any:
    if isinstance(seed, Tensor):
        value = seed.item()
        return int(value) if isinstance(value, float) and value.is_integer() else value
    return seed


def _get_state(generator: RandomGenerator) -> Tensor:
    return new_leaf(np.frombuffer(_encoded(generator.stream), UINT8).copy())


def _set_state(generator: RandomGenerator, state: Any) -> RandomGenerator:
    if not isinstance(state, Tensor) or state.dtype != UINT8 or state.shape != (_STATE.size,):
        raise fault("E205 state-what-get_state", kind_of(state))
    generator.stream.set_state(_decoded(state.numpy().tobytes()))
    return generator


def _encoded(stream: Generator) -> bytes:
    seed, words, kept = stream.get_state()
    key, place = words["state"]["key"], int(words["state"]["pos"])
    fresh = place == _WORDS and np.array_equal(
        key, Generator(seed).get_state().words["state"]["key"]
    )
    return _STATE.pack(
        seed,
        _WORDS + 1 - place,
        1,
        0 if fresh else place,
        key.astype("<u8").tobytes(),
        0.0,
        0.0 if kept is None else kept,
        0.0,
        kept is not None,
        0,
    )


def _decoded(data: bytes) -> GeneratorState:
    seed, left, _, following, words, _, kept, _, is_kept, _ = _STATE.unpack(data)
    if not 0 <= following <= _WORDS or not 1 <= left <= _WORDS:
        raise fault("E205 these-bytes-no-state")
    place = _WORDS if left == 1 else following
    key = np.frombuffer(words, "<u8").astype(np.uint32)
    twister = {"bit_generator": "MT19937", "state": {"key": key, "pos": place}}
    return GeneratorState(seed, twister, kept if is_kept else None)


_METHODS: dict[str, Callable[..., Any]] = {
    "manual_seed": _seeded,
    "seed": lambda generator: generator.stream.seed(),
    "initial_seed": lambda generator: generator.stream.initial_seed(),
    "get_state": _get_state,
    "set_state": _set_state,
    "clone_state": lambda generator: RandomGenerator(generator.stream.clone()),
}


def _make(device: Any = "cpu") -> RandomGenerator:
    check_device(device)
    return RandomGenerator(Generator())


def _set_rng_state(state: Any) -> None:
    _set_state(DEFAULT, state)


GENERATOR_TYPE = TypeName(
    "torch.Generator", lambda value: isinstance(value, RandomGenerator), _make
)

SEEDS: dict[str, Callable[..., Any]] = {
    "manual_seed": lambda seed: _manual_seed(DEFAULT, seed),
    "seed": lambda: DEFAULT.stream.seed(),
    "initial_seed": lambda: DEFAULT.stream.initial_seed(),
    "get_rng_state": lambda: _get_state(DEFAULT),
    "set_rng_state": lambda new_state: _set_rng_state(new_state),
}

"""`torch.utils.data`: datasets, samplers and the loader, which draw PyTorch's order of examples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import accumulate, islice
from typing import Any

from ...autograd.random.stream import Generator
from ...autograd.tensor import Tensor
from ...errors import fail, fault
from ...graph.dtypes import DTYPES
from ...graph.params import type_name
from ...graph.registry import F
from ..random.generators import stream_of
from ..values.dialect import kind_of
from ..values.factories import as_tensor, make_tensor
from ..values.formatting import represent
from ..values.functions import call_value
from ..values.housekeeping import count_step
from ..values.iterators import Lazy, iterator, make_iterator
from ..values.operations import items_of, truth
from ..values.subscripts import index, slice_part
from ..values.user_classes import Object, library_class
from ..values.values import Builtin, builtins_of

Method = Callable[..., Any]


def _length(value: Any) -> int:
    from ..python.builtins import FUNCTIONS

    return FUNCTIONS["len"](value)


# What an argument has to be, in words, and PyTorch's exception where it is not.
Check = tuple[Callable[[Any], bool], str, str]


def _positive(value: Any) -> bool:
    return type(value) is int and value > 0


_POSITIVE: Check = _positive, "a positive integer value", "ValueError"
_POSITIVE_OR_NONE: Check = lambda n: n is None or _positive(n), *_POSITIVE[1:]
_BOOLEAN: Check = lambda value: type(value) is bool, "a boolean value", "ValueError"
_ROW: Check = lambda value: len(as_tensor(value).shape) == 1, "a 1d sequence", "ValueError"


def _kept(names: str, defaults: dict[str, Any] | None = None, **checks: Check) -> Method:
    """An `__init__` that keeps its arguments, after checks of them in this order."""
    known = names.split()

    def init(self: Object, *args: Any, **kwargs: Any) -> None:
        given = {**(defaults or {}), **dict(zip(known, args, strict=False)), **kwargs}
        if set(given) != set(known) or len(args) > len(known):
            raise fail(
                "E205",
                f"`{self.cls.name}` takes {', '.join(known)}",
                help=f"write `{self.cls.name}({', '.join(f'{n}=...' for n in known)})`",
            )
        for name, (holds, wanted, raises) in checks.items():
            if not holds(given[name]):
                raise fail(
                    "E205",
                    f"{name} should be {wanted}, but got {name}={represent(given[name])[:40]}",
                    help=f"write `{self.cls.name}(..., {name}=...)` with another value",
                    raises=raises,
                )
        self.fields.update(given)

    return init


def _items(init: Method, item: Method, length: Method) -> dict[str, Method]:
    """The methods of a dataset that is looked up."""
    return {"__init__": init, "__getitem__": item, "__len__": length}


def _order(init: Method, items: Method, length: Method) -> dict[str, Method]:
    """The methods of what gives keys, or batches, one after the other."""
    return {"__init__": init, "__iter__": items, "__len__": length}


def _length_of(field: str) -> Method:
    return lambda self: _length(self.fields[field])


# -- datasets -------------------------------------------------------------------------------------


def _no_items(self: Object, key: Any) -> Any:
    raise fault("E207 defines-no-getitem", self.cls.name)


def _tensors(self: Object, *tensors: Any) -> None:
    sizes = {_length(t) for t in tensors}
    if len(sizes) > 1:
        raise fault("E308 size-mismatch-between-tensors", sorted(sizes))
    self.fields["tensors"] = tuple(tensors)


def _subset_item(self: Object, key: Any) -> Any:
    indices = self.fields["indices"]
    if isinstance(key, list):
        return index(self.fields["dataset"], [index(indices, k) for k in key])
    return index(self.fields["dataset"], index(indices, key))


def _joined(self: Object, datasets: Any) -> None:
    parts = self.fields["datasets"] = items_of(datasets)
    if not parts:
        raise fault("E205 datasets-should-not-empty")
    self.fields["cumulative_sizes"] = list(accumulate(_length(part) for part in parts))


def _joined_item(self: Object, key: Any) -> Any:
    at = slice_part(key) or 0
    total = self.fields["cumulative_sizes"][-1]
    if at < 0:
        if -at > total:
            raise fault("E205 absolute-value-index-should", total=total)
        at += total
    for part in self.fields["datasets"]:
        size = _length(part)
        if at < size:
            return index(part, at)
        at -= size
    raise fault("E210 index-out-range", key)


DATASET = library_class("Dataset", [], {"__getitem__": _no_items})
ITERABLE = library_class("IterableDataset", [DATASET], {})
SUBSET = library_class(
    "Subset", [DATASET], _items(_kept("dataset indices"), _subset_item, _length_of("indices"))
)
TENSORS = library_class(
    "TensorDataset",
    [DATASET],
    _items(
        _tensors,
        lambda self, key: tuple([index(t, key) for t in self.fields["tensors"]]),
        lambda self: _length(self.fields["tensors"][0]),
    ),
)
JOINED = library_class(
    "ConcatDataset",
    [DATASET],
    _items(_joined, _joined_item, lambda self: sum(map(_length, self.fields["datasets"]))),
)


def _split(dataset: Any, lengths: Any, generator: Any = None) -> list[Object]:
    """`random_split`."""
    total = _length(dataset)
    parts = items_of(lengths)
    whole = sum(parts)
    if math.isclose(whole, 1) and whole <= 1:
        parts = [math.floor(total * fraction) for fraction in parts]
        for i in range(total - sum(parts)):
            parts[i % len(parts)] += 1
    if sum(parts) != total:
        raise fault("E205 sum-input-lengths-does", sum(parts), total=total)
    order = stream_of(generator).randperm(total).tolist()
    found = []
    for end, length in zip(accumulate(parts), parts, strict=True):
        found.append(SUBSET(dataset, order[end - length : end]))
    return found


# -- samplers -------------------------------------------------------------------------------------


def _source_length(self: Object) -> int:
    given = self.fields.get("_num_samples")
    return _length(self.fields["data_source"]) if given is None else given


def _random_order(self: Object) -> Lazy:
    def items() -> Iterator[int]:
        n = _length(self.fields["data_source"])
        stream = (
            _fresh() if self.fields["generator"] is None else stream_of(self.fields["generator"])
        )
        wanted = _source_length(self)
        if truth(self.fields["replacement"]):
            for at in range(0, wanted, 32):
                size = min(32, wanted - at)
                yield from stream.randint(0, n, (size,), DTYPES["int64"]).tolist()
        else:
            for at in range(0, wanted, max(n, 1)):
                yield from stream.randperm(n).tolist()[: wanted - at]
            if n and wanted % n == 0:
                stream.randperm(n)

    return Lazy("generator", items())


def _fresh() -> Any:
    """A generator seeded by a draw from the default one."""
    seed = _drawn_seed(None)
    stream = Generator()
    stream.manual_seed(seed)
    return stream


def _drawn_seed(generator: Any) -> int:
    """`torch.empty((), dtype=torch.int64).random_(generator=generator).item()`."""
    return int(stream_of(generator).random(()))


def _some_order(self: Object) -> Lazy:
    indices = items_of(self.fields["indices"])

    def items() -> Iterator[Any]:
        for i in stream_of(self.fields["generator"]).randperm(len(indices)).tolist():
            yield indices[i]

    return Lazy("generator", items())


def _weighted_order(self: Object) -> Lazy:
    from ..random.functions import RANDOM

    weights = as_tensor(self.fields["weights"], dtype=DTYPES["float64"])
    drawn = RANDOM["multinomial"].function(
        weights,
        self.fields["num_samples"],
        truth(self.fields["replacement"]),
        generator=self.fields["generator"],
    )
    return Lazy("generator", iter(drawn.numpy().tolist()))


def _batched(source: Any, options: dict[str, Any]) -> Iterator[list[Any]]:
    """The items of a source, as many at a time as the options of a sampler or loader say."""
    items = iterator(make_iterator(source))
    size, drop = options["batch_size"], truth(options["drop_last"])
    while batch := list(islice(items, size)):
        if len(batch) < size and drop:
            return
        yield batch


def _batches(self: Object) -> Lazy:
    return Lazy("generator", _batched(self.fields["sampler"], self.fields))


def _count(n: int, options: dict[str, Any]) -> int:
    """How many batches so many items make."""
    size = options["batch_size"]
    return n // size if truth(options["drop_last"]) else -(-n // size)


def _batch_count(self: Object) -> int:
    return _count(_length(self.fields["sampler"]), self.fields)


SAMPLER = library_class("Sampler", [], {"__init__": lambda self, data_source=None: None})
SEQUENTIAL = library_class(
    "SequentialSampler",
    [SAMPLER],
    _order(
        _kept("data_source"),
        lambda self: Lazy("range_iterator", iter(range(_source_length(self)))),
        _source_length,
    ),
)
_KEEP_SOURCE = _kept(
    "data_source replacement num_samples generator",
    {"replacement": False, "num_samples": None, "generator": None},
    replacement=(*_BOOLEAN[:2], "TypeError"),
    num_samples=_POSITIVE_OR_NONE,
)


def _random_sampler(self: Object, *args: Any, **kwargs: Any) -> None:
    _KEEP_SOURCE(self, *args, **kwargs)
    self.fields["_num_samples"] = self.fields.pop("num_samples")
    if not _source_length(self):
        raise fault("E205 num_samples-should-positive-integer")


RANDOM_ORDER = library_class(
    "RandomSampler",
    [SAMPLER],
    {
        **_order(_random_sampler, _random_order, _source_length),
        "num_samples": property(Builtin("num_samples", _source_length)),
    },
)
SOME_ORDER = library_class(
    "SubsetRandomSampler",
    [SAMPLER],
    _order(_kept("indices generator", {"generator": None}), _some_order, _length_of("indices")),
)
WEIGHTED_ORDER = library_class(
    "WeightedRandomSampler",
    [SAMPLER],
    _order(
        _kept(
            "weights num_samples replacement generator",
            {"replacement": True, "generator": None},
            num_samples=_POSITIVE,
            replacement=_BOOLEAN,
            weights=_ROW,
        ),
        _weighted_order,
        lambda self: self.fields["num_samples"],
    ),
)
BATCHES = library_class(
    "BatchSampler",
    [SAMPLER],
    _order(
        _kept("sampler batch_size drop_last", batch_size=_POSITIVE, drop_last=_BOOLEAN),
        _batches,
        _batch_count,
    ),
)


# -- the loader -----------------------------------------------------------------------------------


def collate(batch: Any) -> Any:
    """`default_collate`: examples become one batch, tensors are stacked."""
    count_step()
    first = batch[0]
    if isinstance(first, Tensor):
        return Tensor(F.stack(tuple([as_tensor(item).node for item in batch]), 0))
    if isinstance(first, float):
        return make_tensor(list(batch), dtype=DTYPES["float64"])
    if isinstance(first, int):
        return make_tensor(list(batch))
    if isinstance(first, str):
        return batch
    if isinstance(first, dict):
        return {key: collate([item[key] for item in batch]) for key in first}
    if isinstance(first, list | tuple):
        if len({len(item) for item in batch}) > 1:
            raise fault("E308 each-element-list-batch")
        columns = [collate(column) for column in zip(*batch, strict=True)]
        made = getattr(first, "cls", None)  # of named ones
        return columns if made is None else made(*columns)
    raise fault("E208 batch-made-tensors", kind_of(first), type_name(first))


def _converted(item: Any) -> Any:
    """`default_convert`: an example by itself, tuples as lists."""
    if isinstance(item, dict):
        return {key: _converted(part) for key, part in item.items()}
    if not isinstance(item, list | tuple):
        return item
    parts = [_converted(part) for part in item]
    made = getattr(item, "cls", None)
    return parts if made is None else made(*parts)


_OPTIONS: dict[str, Any] = {
    "batch_size": 1,
    "shuffle": None,
    "sampler": None,
    "batch_sampler": None,
    "num_workers": 0,
    "collate_fn": None,
    "pin_memory": False,
    "drop_last": False,
    "timeout": 0,
    "worker_init_fn": None,
    "multiprocessing_context": None,
    "generator": None,
    "prefetch_factor": None,
    "persistent_workers": False,
    "pin_memory_device": "",
    "in_order": True,
}


def _loader(self: Object, dataset: Any, *args: Any, **kwargs: Any) -> None:
    given = {**dict(zip(_OPTIONS, args, strict=False)), **kwargs}
    for name in given:
        if name not in _OPTIONS:
            raise fault(
                "E205 dataloader-got-unexpected-keyword", ", ".join(list(_OPTIONS)[:8]), name=name
            )
    options = {**_OPTIONS, **given}
    sampler, batches, shuffle = options["sampler"], options["batch_sampler"], options["shuffle"]
    if sampler is not None and shuffle:
        raise fault("E205 sampler-option-mutually-exclusive")
    alone = options["batch_size"] == 1 and not shuffle and sampler is None
    if batches is not None and not (alone and not options["drop_last"]):
        raise fault("E205 batch_sampler-option-mutually-exclusive")
    if batches is not None:
        options["batch_size"] = None
    stream = ITERABLE.has_instance(dataset)
    for holds, words in (
        (type(options["num_workers"]) is not int or options["num_workers"] >= 0, "num_workers"),
        (options["timeout"] >= 0, "timeout"),
    ):
        if not holds:
            raise fault("E205 option-should-non-negative", words=words)
    if not options["num_workers"] and (
        options["persistent_workers"] or options["prefetch_factor"] is not None
    ):
        raise fault("E205 loader-option-needs-workers")
    if stream and (shuffle not in (None, False) or sampler is not None or batches is not None):
        raise fault("E205 loader-iterabledataset-takes-no")
    if sampler is None and batches is None and not stream:
        if shuffle is not None and truth(shuffle):
            sampler = RANDOM_ORDER(dataset, generator=options["generator"])
        else:
            sampler = SEQUENTIAL(dataset)
    size = options["batch_size"]
    if size is None and batches is None and options["drop_last"]:
        raise fault("E205 batch_size-none-disables-batching")
    if size is not None and not _positive(size):
        raise fault("E205 batch_size-should-positive-integer", size=size)
    if size is not None and batches is None and sampler is not None:
        batches = BATCHES(sampler, size, truth(options["drop_last"]))
    self.fields.update(options)
    self.fields.update(dataset=dataset, sampler=sampler, batch_sampler=batches)
    if options["collate_fn"] is None:
        single = size is None and batches is None
        self.fields["collate_fn"] = NAMES["default_convert" if single else "default_collate"]


class _Batches(Lazy):
    """One run through a loader; `len()` counts the batches of a whole one."""

    __slots__ = ("loader",)

    def __init__(self, name: str, source: Iterator[Any], loader: Object):
        super().__init__(name, source)
        self.loader = loader

    def __len__(self) -> int:
        return _loader_length(self.loader)


def _loaded(self: Object) -> Lazy:
    """Starting an iteration draws a seed for workers, as PyTorch does without any."""
    fields = self.fields
    dataset = fields["dataset"]
    stream = ITERABLE.has_instance(dataset)
    order = None if stream else fields["batch_sampler"] or fields["sampler"]
    keys = None if order is None else iterator(make_iterator(order))
    _drawn_seed(fields["generator"])

    def batches() -> Iterator[Any]:
        single = fields["batch_sampler"] is None
        found: Iterator[Any]
        if keys is not None:
            found = (index(dataset, k) if single else [index(dataset, i) for i in k] for k in keys)
        elif fields["batch_size"] is None:
            found = iterator(make_iterator(dataset))
        else:
            found = _batched(dataset, fields)
        for gathered in found:
            yield call_value(fields["collate_fn"], [gathered], {})

    return _Batches("_SingleProcessDataLoaderIter", batches(), self)


def _loader_length(self: Object) -> int:
    order = self.fields["batch_sampler"] or self.fields["sampler"]
    if order is not None:
        return _length(order)
    n = _length(self.fields["dataset"])
    return n if self.fields["batch_size"] is None else _count(n, self.fields)


LOADER = library_class("DataLoader", [], _order(_loader, _loaded, _loader_length))
_CLASSES = (
    DATASET, ITERABLE, SUBSET, TENSORS, JOINED, SAMPLER, SEQUENTIAL, RANDOM_ORDER, SOME_ORDER,
    WEIGHTED_ORDER, BATCHES, LOADER,
)  # fmt: skip
NAMES: dict[str, Any] = {
    **{cls.name: cls for cls in _CLASSES},
    **builtins_of(
        {"random_split": _split, "default_collate": collate, "default_convert": _converted}
    ),
}

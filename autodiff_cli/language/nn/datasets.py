"""`torch.utils.data`: PyTorch's order of examples, and batches of them; what is written in the
language itself is in `prelude/data.expr`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from ...autograd.random.stream import Generator
from ...autograd.tensor import Tensor
from ...errors import fault
from ...graph.dtypes import DTYPES
from ...graph.params import type_name
from ...graph.registry import F
from ..random.generators import stream_of
from ..values.dialect import kind_of
from ..values.factories import as_tensor, make_tensor
from ..values.functions import call_value
from ..values.housekeeping import count_step
from ..values.iterators import Lazy, iterator, make_iterator
from ..values.operations import items_of, truth
from ..values.providers import from_above
from ..values.subscripts import index
from ..values.user_classes import Object


def random_order(n: int, wanted: int, replacement: Any, generator: Any) -> Lazy:
    """`wanted` numbers below `n`: each as often as another, or drawn apart."""

    def items() -> Iterator[int]:
        stream = _fresh() if generator is None else stream_of(generator)
        if truth(replacement):
            for at in range(0, wanted, 32):
                size = min(32, wanted - at)
                yield from stream.randint(0, n, (size,), DTYPES["int64"]).tolist()
        else:
            for _ in range(wanted // n):
                yield from stream.randperm(n).tolist()
            yield from stream.randperm(n).tolist()[: wanted % n]

    return Lazy("generator", items())


def _fresh() -> Any:
    """A generator seeded by a draw from the default one."""
    stream = Generator()
    stream.manual_seed(_drawn_seed(None))
    return stream


def _drawn_seed(generator: Any) -> int:
    """`torch.empty((), dtype=torch.int64).random_(generator=generator).item()`."""
    return int(stream_of(generator).random(()))


def some_order(indices: Any, generator: Any) -> Lazy:
    """The indices, shuffled."""
    found = items_of(indices)

    def items() -> Iterator[Any]:
        for i in stream_of(generator).randperm(len(found)).tolist():
            yield found[i]

    return Lazy("generator", items())


def _batched(source: Any, size: int, drop_last: Any) -> Iterator[list[Any]]:
    items = iterator(make_iterator(source))
    while batch := list(islice(items, size)):
        if len(batch) < size and truth(drop_last):
            return
        yield batch


def batches(source: Any, size: int, drop_last: Any) -> Lazy:
    """The items of a source, so many at a time; a last batch of fewer is dropped if asked."""
    return Lazy("generator", _batched(source, size, drop_last))


def default_collate(batch: Any) -> Any:
    """Examples become one batch, tensors are stacked."""
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
        return {key: default_collate([item[key] for item in batch]) for key in first}
    if isinstance(first, list | tuple):
        if len({len(item) for item in batch}) > 1:
            raise fault("E308 each-element-list-batch")
        columns = [default_collate(column) for column in zip(*batch, strict=True)]
        made = getattr(first, "cls", None)  # of named ones
        return columns if made is None else made(*columns)
    raise fault("E208 batch-made-tensors", kind_of(first), type_name(first))


def default_convert(item: Any) -> Any:
    """An example by itself, tuples as lists."""
    if isinstance(item, dict):
        return {key: default_convert(part) for key, part in item.items()}
    if not isinstance(item, list | tuple):
        return item
    parts = [default_convert(part) for part in item]
    made = getattr(item, "cls", None)
    return parts if made is None else made(*parts)


class _Batches(Lazy):
    """One run through a loader; `len()` counts the batches of a whole one."""

    __slots__ = ("loader",)

    def __init__(self, name: str, source: Iterator[Any], loader: Object):
        super().__init__(name, source)
        self.loader = loader

    def __len__(self) -> int:
        return from_above("python.builtins.FUNCTIONS")["len"](self.loader)


def loaded(loader: Object, order: Any) -> Lazy:
    """Starting an iteration draws a seed for workers, as PyTorch does without any."""
    fields = loader.fields
    dataset = fields["dataset"]
    keys = None if order is None else iterator(make_iterator(order))
    _drawn_seed(fields["generator"])

    def collated() -> Iterator[Any]:
        single = fields["batch_sampler"] is None
        found: Iterator[Any]
        if keys is not None:
            found = (index(dataset, k) if single else [index(dataset, i) for i in k] for k in keys)
        elif fields["batch_size"] is None:
            found = iterator(make_iterator(dataset))
        else:
            found = _batched(dataset, fields["batch_size"], fields["drop_last"])
        for gathered in found:
            yield call_value(fields["collate_fn"], [gathered], {})

    return _Batches("_SingleProcessDataLoaderIter", collated(), loader)

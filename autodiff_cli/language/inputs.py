"""What a replayed step is given anew: names that are chosen for it, and numbers that change outside
of it, as schedules change a learning rate."""

from __future__ import annotations

from typing import Any

from ..autograd.tensor import Tensor
from .carried import Slot, Snapshot
from .classes import Instance
from .reach import named
from .step_parts import Late, Parts
from .values import Namespace, OpFunction, Scope

SIMPLE = (bool, int, float, str, type(None), range, slice)
WORDS = (Namespace, OpFunction)
COUNTED = (int, float, str, list)

SCHEDULED = ("lr", "momentum")  # options of a group that schedules change

Place = tuple[Any, Any]  # a holder and a key


class Inputs:
    """The names and the `places` of numbers that a step reads; `keys` are the places by identity,
    `watched` entries of parameter groups that have to stay."""

    def __init__(self, parts: Parts, scope: Scope, slots: list[Slot]):
        self.scope = scope
        self.slots = slots
        self.names = set(parts.given)
        self.places: list[Place] = []
        self.keys: dict[Any, Any] = {}
        self.watched: list[tuple[dict[Any, Any], Any, Any]] = []
        self.parts = parts

    def take(self, numbers: dict[Any, Any]) -> bool:
        """Note the numbers that changed, and those that schedules may change; False where one
        cannot be given anew."""
        found = dict(numbers)
        for name in self.parts.schedules:
            schedule = schedule_of(name, self.scope)
            if schedule is None:
                return False
            for group in schedule.fields["optimizer"].fields["param_groups"]:
                for key, value in group.items():
                    if key in SCHEDULED and type(value) is float:
                        found[id(group), key] = group
                    elif key not in ("params", "initial_lr"):
                        self.watched.append((group, key, value))
        for (_, key), holder in found.items():
            if isinstance(holder, Instance):
                if key not in holder.fields:
                    return False
                holder = holder.fields
            elif type(holder) not in (dict, list):
                return False
            self.places.append((holder, key))
        self.keys = found
        return True

    def unchanged(self) -> bool:
        """Whether parameter groups are as they were, except for the numbers."""
        return all(group.get(key) is value for group, key, value in self.watched)


def schedule_of(name: str, scope: Scope) -> Instance | None:
    """The schedule of learning rates that a name means, if it came with the language."""
    value = named(name, scope)[1]
    if not isinstance(value, Instance) or "optimizer" not in value.fields:
        return None
    known = value.cls.mro[-1].name == "LRScheduler" and value.cls.fixed
    return value if known else None


def innocent_values(
    parts: Parts, scope: Scope, after: Snapshot, slots: list[Slot]
) -> set[int] | None:
    """Whether the names of statements around a step mean values that these may read; of those
    after it, the places of the ones that look at more than results. None when they may not."""
    changed = {slot.tensor for slot in slots}
    held = {id(part) for _, _, part in after.held if isinstance(part, list | dict)}
    grown = [named(name, scope)[1] for name in parts.grown]
    for name in parts.chosen_from - parts.outer:
        at, value = named(name, scope)
        if at is not None and (not _steady(value, changed) or any(value is g for g in grown)):
            return None
    for name in parts.numbers:
        if not isinstance(named(name, scope)[1], COUNTED):
            return None
    looking: set[int] = set()
    for late in parts.late:
        looks = _looks(late, parts, scope, held)
        if looks is None or (looks and (late.followed or late.body is not None)):
            return None
        if looks:
            looking.add(late.place)
    return looking


def is_data(name: str, scope: Scope) -> bool:
    """Whether a name means something that is given to steps, not changed by them."""
    at, value = named(name, scope)
    if isinstance(value, list | tuple):
        return all(not isinstance(v, Tensor) or not v.requires_grad for v in value)
    if isinstance(value, Tensor):
        return not value.requires_grad
    return at is None or _steady(value, set())


def _steady(value: Any, changed: set[Tensor]) -> bool:
    """Whether choosing an input may read a value: it is not what steps change."""
    if isinstance(value, Tensor):
        return value not in changed
    if isinstance(value, list | tuple):
        return all(isinstance(v, SIMPLE) or _steady(v, changed) for v in value)
    if isinstance(value, Instance):
        return value.cls.fixed and value.cls.name in ("TensorDataset", "Subset")
    return isinstance(value, SIMPLE + WORDS)


def _looks(late: Late, parts: Parts, scope: Scope, held: set[int]) -> bool | None:
    """Whether a statement looks at more than results and numbers; None when nobody knows what it
    does, or when it changes what the step reads."""
    looks = False
    for name in late.others - parts.late_names - parts.outer:
        if name in parts.schedules:
            continue
        at, value = named(name, scope)
        if at is None or isinstance(value, SIMPLE + WORDS):
            continue
        if isinstance(value, Tensor):
            looks = True
        elif isinstance(value, list | dict | tuple):
            found = _inside(value, held)
            if found is None:
                return None
            looks = looks or found
        else:
            return None
    return looks


def _inside(value: Any, held: set[int]) -> bool | None:
    """Whether a container has tensors in it; None when the step reads it, or for other values."""
    pending = [value]
    looks = False
    while pending:
        part = pending.pop()
        if isinstance(part, Tensor):
            looks = True
        elif isinstance(part, list | dict | tuple):
            if id(part) in held:
                return None
            inner = part.values() if isinstance(part, dict) else part
            pending.extend(x for x in inner if not isinstance(x, SIMPLE))
        else:
            return None
    return looks


__all__ = ["Inputs", "innocent_values", "is_data", "schedule_of"]

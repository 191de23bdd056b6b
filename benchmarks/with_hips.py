"""The workloads of small calls in HIPS autograd; see with_numpy for the form."""

from __future__ import annotations

from typing import Any

import autograd.numpy as np
from autograd import value_and_grad

from .with_numpy import Job, Results
from .workloads import batches, together


def _classify_loss(wrt: Any, X: Any, t: Any) -> Any:
    z = np.dot(X, wrt["w"]) + wrt["b"]
    return np.mean(np.logaddexp(0, z) - t * z)


_classified = value_and_grad(_classify_loss)


def sizes(w: Any, b: Any, X: Any, t: Any, count: Any) -> Job:
    def call(*batch: Any) -> Results:
        value, found = _classified({"w": w, "b": b}, *batch)
        return {"loss": value, **found}

    return lambda: together([call(*batch) for batch in batches(X, t, count)])


sizes_again = sizes


def classify(count: Any, **arrays: Any) -> Job:
    job = sizes(**arrays, count=1)
    return lambda: {name: found[0] for name, found in job().items()}


def _rnn_loss(wrt: Any, x: Any) -> Any:
    h = np.zeros(len(wrt["W"]))
    for row in x:
        h = np.tanh(np.dot(wrt["W"], h) + np.dot(wrt["U"], row))
    return np.sum(h * h)


def rnn(W: Any, U: Any, x: Any, steps: Any) -> Job:
    graded = value_and_grad(_rnn_loss)

    def job() -> Results:
        value, found = graded({"W": W, "U": U}, x)
        return {"loss": value, **found}

    return job

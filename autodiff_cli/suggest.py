"""Did-you-mean: close names, and what other libraries' names are called here.

Invariant: the answer depends only on the words given (never on their order), and takes a few
milliseconds for thousands of candidates.
"""

from __future__ import annotations

from collections.abc import Iterable

_LONGEST = 80


def suggest(word: str, candidates: Iterable[str], limit: int = 3) -> list[str]:
    """Up to `limit` candidates that `word` was probably meant to be, the best first.

    A candidate is close when its edit distance (optimal string alignment, letter case ignored) is
    at most a third of the word's length, at least 1 and at most 3, or when one contains the other.
    Beside a good hit, others one edit further away are listed too. A one-letter word matches
    only the same letter in the other case: any two letters are one edit apart.
    """
    if not word or len(word) > _LONGEST:
        return []
    folded = word.lower()
    pool = {candidate for candidate in candidates if candidate and candidate != word}
    if len(word) == 1:
        return sorted(candidate for candidate in pool if candidate.lower() == folded)[:limit]
    closest = min(3, max(1, len(word) // 3))
    letters = _letters(folded)
    found: list[tuple[float, bool, int, str]] = []
    for candidate in pool:
        length = len(candidate)
        if length > _LONGEST:
            continue
        other = candidate.lower()
        contained = _containment(folded, other)
        distance: float = closest + 2
        # Both are lower bounds of the distance, and far cheaper than the distance itself.
        if abs(length - len(word)) <= closest + 1 and (
            (letters ^ _letters(other)).bit_count() <= 2 * closest + 2
        ):
            distance = _distance(folded, other, closest + 1)
        if length == 1 and distance and not folded.startswith(other):
            continue
        if distance >= max(length, len(word)):  # no letter in common
            continue
        if contained is not None:
            distance = min(distance - 0.5, contained)
        if distance <= closest + 1:
            # Of equally close words one of the same letters is a swap: the likelier slip.
            swapped = sorted(folded) == sorted(other)
            found.append((distance, not swapped, abs(length - len(word)), candidate))
    found.sort()
    return [candidate for *_, candidate in found[:limit]] if _good(found, closest) else []


def did_you_mean(close: list[str]) -> list[str]:
    """The line of help that offers close names, if there are any."""
    return [f"did you mean {' or '.join(f'`{name}`' for name in close)}?"] if close else []


def _good(found: list[tuple[float, bool, int, str]], closest: int) -> bool:
    return bool(found) and found[0][0] <= closest


def _containment(word: str, other: str) -> float | None:
    """A score for words that contain each other (a prefix is better), else None."""
    short, long = (word, other) if len(word) <= len(other) else (other, word)
    if len(short) < 3 or short not in long or 3 * len(short) < len(long):
        return None
    return 0.9 if long.startswith(short) else 1.0


def _letters(word: str) -> int:
    """The set of letters of a word as bits; an edit changes at most two of them."""
    bits = 0
    for char in word:
        bits |= 1 << (ord(char) & 63)
    return bits


def _distance(left: str, right: str, most: int) -> int:
    """Insertions, deletions, replacements and swaps of neighbours between two words; `most + 1`
    when there are more than `most`."""
    if left == right:
        return 0
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, char in enumerate(left, 1):
        after = [i]
        for j, other in enumerate(right, 1):
            cost = row[j - 1] if char == other else 1 + min(row[j - 1], row[j], after[j - 1])
            if i > 1 and j > 1 and char == right[j - 2] and left[i - 2] == other != char:
                cost = min(cost, before[j - 2] + 1)
            after.append(cost)
        if min(after) > most and min(row) > most:
            return most + 1
        before, row = row, after
    return min(row[-1], most + 1)


def synonym(word: str) -> str | None:
    """What to write here for a name of NumPy, JAX, TensorFlow, MATLAB or plain mathematics."""
    if len(word) > _LONGEST:
        return None
    name = word.lower()
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            break
    found = SYNONYMS.get(name)
    return None if found == word else found


# Longest first: `jax.numpy.` before `jax.`.
_PREFIXES = (
    "tf.keras.activations.",
    "tf.keras.layers.",
    "tf.keras.losses.",
    "tf.linalg.",
    "tf.random.",
    "tf.math.",
    "tf.nn.",
    "tf.",
    "jax.numpy.",
    "jax.random.",
    "jax.scipy.special.",
    "jax.nn.",
    "jax.lax.",
    "jax.",
    "jnp.linalg.",
    "jnp.",
    "lax.",
    "scipy.special.",
    "scipy.linalg.",
    "numpy.linalg.",
    "numpy.",
    "np.linalg.",
    "np.random.",
    "np.",
    "keras.",
    "mx.",
)

SYNONYMS: dict[str, str] = {
    # reductions
    "reduce_sum": "sum",
    "reduce_mean": "mean",
    "reduce_max": "amax",
    "reduce_min": "amin",
    "reduce_prod": "prod",
    "reduce_any": "any",
    "reduce_all": "all",
    "reduce_std": "std",
    "reduce_variance": "var",
    "reduce_logsumexp": "logsumexp",
    "reduce_euclidean_norm": "norm",
    "average": "mean",
    "avg": "mean",
    "total": "sum",
    "summation": "sum",
    "product": "prod",
    "variance": "var",
    "stddev": "std",
    "stdev": "std",
    "arg_max": "argmax",
    "arg_min": "argmin",
    "num_elements": "numel",
    "nnz": "count_nonzero",
    # matrices
    "matrix_multiply": "matmul",
    "matmult": "matmul",
    "mat_mul": "matmul",
    "mmul": "matmul",
    "gemm": "matmul",
    "batch_matmul": "bmm",
    "dot_general": "matmul",
    "dot_product": "dot",
    "matrix_transpose": "mT",
    "determinant": "det",
    "matrix_determinant": "det",
    "matrix_inverse": "inv",
    "matrix_diag": "diag_embed",
    "diag_part": "diagonal",
    "matrix_diag_part": "diagonal",
    "matrix_band_part": "tril",
    "identity": "eye",
    "matrix_solve": "linalg.solve",
    "solve_triangular": "linalg.solve_triangular",
    "self_adjoint_eig": "linalg.eigh",
    "eig_symmetric": "linalg.eigh",
    "tensor_dot": "tensordot",
    "outer_product": "outer",
    "cross_product": "cross",
    "l2_norm": "norm",
    "global_norm": "norm",
    # element by element
    "elementwise_mul": "mul",
    "times": "mul",
    "plus": "add",
    "minus": "sub",
    "realdiv": "div",
    "truediv": "div",
    "power": "pow",
    "sq": "square",
    "sqr": "square",
    "squared": "square",
    "squareroot": "sqrt",
    "square_root": "sqrt",
    "reciprocal_sqrt": "rsqrt",
    "rec_sqrt": "rsqrt",
    "ln": "log",
    "natural_log": "log",
    "lg": "log10",
    "exponential": "exp",
    "fabs": "abs",
    "magnitude": "abs",
    "absval": "abs",
    "signum": "sign",
    "floordiv": "floor_divide",
    "floormod": "remainder",
    "mod": "remainder",
    "truncate": "trunc",
    "rint": "round",
    "around": "round",
    "clip_by_value": "clamp",
    "tg": "tan",
    "arctg": "atan",
    "sh": "sinh",
    "ch": "cosh",
    "th": "tanh",
    "gammaln": "lgamma",
    "loggamma": "lgamma",
    "psi": "digamma",
    "expit": "sigmoid",
    "logistic": "sigmoid",
    "sigm": "sigmoid",
    "log_sigmoid": "logsigmoid",
    "hard_tanh": "hardtanh",
    "hard_sigmoid": "hardsigmoid",
    "leakyrelu": "leaky_relu",
    "lrelu": "leaky_relu",
    "rectifier": "relu",
    "ramp": "relu",
    "swish": "silu",
    "soft_sign": "softsign",
    "soft_plus": "softplus",
    "soft_max": "softmax",
    "logsoftmax": "log_softmax",
    "log_sum_exp": "logsumexp",
    "ifelse": "where",
    "iif": "where",
    "equals": "eq",
    "less_than": "lt",
    "greater_than": "gt",
    "not_equals": "ne",
    "is_nan": "isnan",
    "is_inf": "isinf",
    "is_finite": "isfinite",
    # shapes and selections
    "concat": "cat",
    "concatenation": "cat",
    "append": "cat",
    "horzcat": "hstack",
    "vertcat": "vstack",
    "pack": "stack",
    "unpack": "unbind",
    "unstack": "unbind",
    "expand_dims": "unsqueeze",
    "add_axis": "unsqueeze",
    "new_axis": "None",
    "squeeze_dims": "squeeze",
    "broadcast": "broadcast_to",
    "broadcast_in_dim": "broadcast_to",
    "repmat": "tile",
    "swap_axes": "swapaxes",
    "permute_dimensions": "permute",
    "move_axis": "movedim",
    "reverse": "flip",
    "rev": "flip",
    "gather_nd": "gather",
    "batch_gather": "gather",
    "take_along_axis": "gather",
    "boolean_mask": "masked_select",
    "scatter_nd": "scatter_add",
    "segment_sum": "index_add",
    "top_k": "topk",
    "dynamic_slice": "narrow",
    "rank": "ndim",
    "one_hot_encoding": "one_hot",
    "onehot": "one_hot",
    "cumulative_sum": "cumsum",
    "cumulative_prod": "cumprod",
    # making tensors
    "array": "tensor",
    "constant": "const",
    "variable": "tensor(..., requires_grad=True)",
    "param": "Parameter",
    "random_normal": "randn",
    "random_uniform": "rand",
    "random_int": "randint",
    "standard_normal": "randn",
    "gaussian": "randn",
    "permutation": "randperm",
    "set_seed": "manual_seed",
    "set_random_seed": "manual_seed",
    "prngkey": "manual_seed",
    "seed": "manual_seed",
    "convert_to_tensor": "tensor",
    "cast": "to",
    "astype": "to",
    "iota": "arange",
    # losses
    "mse": "mse_loss",
    "mean_squared_error": "mse_loss",
    "mae": "l1_loss",
    "mean_absolute_error": "l1_loss",
    "huber": "huber_loss",
    "binary_crossentropy": "binary_cross_entropy",
    "sigmoid_cross_entropy_with_logits": "binary_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits": "cross_entropy",
    "sparse_softmax_cross_entropy_with_logits": "cross_entropy",
    "categorical_crossentropy": "cross_entropy",
    "crossentropy": "cross_entropy",
    "kl_divergence": "kl_div",
    "kldiv": "kl_div",
    "nll": "nll_loss",
    "l2_normalize": "normalize",
    "dense": "linear",
    # differentiation
    "gradient": "grad",
    "gradients": "grad",
    "grads": "grad",
    "gradienttape": "autograd.grad",
    "derivative": "grad",
    "differentiate": "grad",
    "stop_gradient": "detach",
    "stopgradient": "detach",
    "stop_grad": "detach",
    "value_and_grad": "func.grad_and_value",
    "pmap": "vmap",
    "vectorized_map": "vmap",
    "custom_gradient": "autograd.Function",
    "custom_vjp": "autograd.Function",
    "custom_jvp": "autograd.Function",
    "backprop": "backward",
    "zero_gradients": "zero_grad",
}

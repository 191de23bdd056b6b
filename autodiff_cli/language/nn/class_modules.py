"""The Python module that PyTorch defines a class in, for `type(m)` and `__module__`."""

from __future__ import annotations

import re

from .module_names import CONTAINERS, OPTIMIZERS, PRELUDE

# By the file of the library, where the name does not say more.
_FILES = {
    "activations": "nn.modules.activation",
    "schedulers": "optim.lr_scheduler",
    "averages": "optim.swa_utils",
    "packed": "nn.utils.rnn",
    "pruning": "nn.utils.prune",
    "reparametrized": "nn.utils.parametrize",
}
_NAMES = (
    (r"AdaptiveLog\w+", "nn.modules.adaptive"),
    (r"\w+Transform|Transform", "distributions.transforms"),
    (r"\w+Loss(?:2d)?", "nn.modules.loss"),
    (r"\w*BatchNorm\dd", "nn.modules.batchnorm"),
    (r"InstanceNorm\dd", "nn.modules.instancenorm"),
    (r"(?:Lazy)?Conv\w*\dd", "nn.modules.conv"),
    (r"\w*Dropout(?:\dd)?", "nn.modules.dropout"),
    (r"\w+(?:Pool|Unpool)\dd", "nn.modules.pooling"),
    (r"\w+Pad\dd", "nn.modules.padding"),
    (r"(?:RNN|LSTM|GRU)(?:Cell)?(?:Base)?", "nn.modules.rnn"),
    (r"Transformer\w*", "nn.modules.transformer"),
    (r"\w+Norm", "nn.modules.normalization"),
    (r"\w*[Ll]inear|Identity", "nn.modules.linear"),
    (r"MultiheadAttention", "nn.modules.activation"),
    (r"Embedding(?:Bag)?", "nn.modules.sparse"),
    (r"Flatten|Unflatten", "nn.modules.flatten"),
    (r"Fold|Unfold", "nn.modules.fold"),
    (r"Pixel\w+", "nn.modules.pixelshuffle"),
    (r"ChannelShuffle", "nn.modules.channelshuffle"),
    (r"Upsampl\w+", "nn.modules.upsampling"),
    (r"PairwiseDistance|CosineSimilarity", "nn.modules.distance"),
    (r"Module", "nn.modules.module"),
    (r"LazyModuleMixin", "nn.modules.lazy"),
    (r"\w*Dataset|Subset", "utils.data.dataset"),
    (r"\w*Sampler", "utils.data.sampler"),
    (r"DataLoader", "utils.data.dataloader"),
    (r"StudentT", "distributions.studentT"),
    (r"FisherSnedecor", "distributions.fishersnedecor"),
    (r"LowRankMultivariateNormal", "distributions.lowrank_multivariate_normal"),
    (r"OneHotCategorical\w*", "distributions.one_hot_categorical"),
    (r"ExponentialFamily", "distributions.exp_family"),
    (r"\w*RelaxedBernoulli", "distributions.relaxed_bernoulli"),
    (r"\w*Relaxed\w+", "distributions.relaxed_categorical"),
)


def module_of(name: str) -> str:
    """`Linear` -> `torch.nn.modules.linear`; "" of what is no class of PyTorch's."""
    file = PRELUDE.get(name, "")
    found = _FILES.get(file, "")
    if name in CONTAINERS:
        found = "nn.modules.container"
    elif name in OPTIMIZERS:
        found = f"optim.{name.lower()}"
    elif not found:
        found = next((path for shape, path in _NAMES if re.fullmatch(shape, name)), "")
    if not found and file in ("distributions", "discrete", "transformed", "less_common"):
        found = "distributions." + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return f"torch.{found}" if found else ""


# The modules that PyTorch defines classes in.
_CLASSES = [*PRELUDE, *CONTAINERS, *OPTIMIZERS, "Module"]
FILES = dict.fromkeys(module_of(name) for name in _CLASSES)

"""Which names of `torch.nn` and `torch.optim` exist, and where: light data, nothing is imported.

`FILES` says what each file of the library written in the language defines (`ConvNd`: of 1, 2 and 3
dims); a test holds the two together.
"""

from __future__ import annotations

from typing import Any

from ..values.providers import Names

FILES: dict[str, str] = {
    "activations": """
        _InPlace Threshold ReLU RReLU Hardtanh ReLU6 Sigmoid Hardsigmoid Tanh SiLU Mish Hardswish
        _Scaled ELU CELU SELU _Along GLU GELU _Shrink Hardshrink Softshrink Tanhshrink LeakyReLU
        LogSigmoid Softplus PReLU Softsign Softmin Softmax Softmax2d LogSoftmax
    """,
    "linear": """
        Identity Linear NonDynamicallyQuantizableLinear Bilinear _Embedded Embedding EmbeddingBag
        Flatten Unflatten PairwiseDistance CosineSimilarity Fold Unfold PixelShuffle PixelUnshuffle
        ChannelShuffle Upsample UpsamplingNearest2d UpsamplingBilinear2d DataParallel
    """,
    "losses": """
        _Loss _WeightedLoss L1Loss MSELoss NLLLoss NLLLoss2d PoissonNLLLoss GaussianNLLLoss
        KLDivLoss BCELoss BCEWithLogitsLoss HingeEmbeddingLoss MultiLabelMarginLoss SmoothL1Loss
        HuberLoss SoftMarginLoss CrossEntropyLoss MultiLabelSoftMarginLoss CosineEmbeddingLoss
        LinearCrossEntropyLoss MarginRankingLoss MultiMarginLoss TripletMarginLoss
        TripletMarginWithDistanceLoss CTCLoss AdaptiveLogSoftmaxWithLoss
    """,
    "normalization": """
        LocalResponseNorm _Affine LayerNorm RMSNorm GroupNorm _NormBase _BatchNorm BatchNormNd
        _InstanceNorm InstanceNormNd _Dropout Dropout DropoutNd AlphaDropout FeatureAlphaDropout
    """,
    "gradients": """
        _vjp conv1d_input conv1d_weight conv2d_input conv2d_weight conv3d_input conv3d_weight
    """,
    "fusion": """
        _fused fuse_conv_bn_weights fuse_conv_bn_eval fuse_linear_bn_weights fuse_linear_bn_eval
    """,
    "recurrent": """
        RNNCellBase RNNCell LSTMCell GRUCell rnn_step lstm_step gru_step RNNBase RNN LSTM GRU
        MultiheadAttention _activation _equal_heads _TransformerLayer TransformerEncoderLayer
        TransformerEncoder
        TransformerDecoderLayer TransformerDecoder Transformer
    """,
    "distributions": """
        Constraint _Constraint _positive_definite _OfAnother _IndependentConstraint
        _MixtureConstraint greater_than greater_than_eq less_than interval half_open_interval
        integer_interval multinomial independent dependent_property
        _Constraints _is_number _not_implemented _broadcast_all _sum_rightmost
        _clamp_probs Distribution ExponentialFamily _LocScale Normal Laplace Cauchy Uniform
        Exponential Gamma Chi2 Dirichlet Beta StudentT _batch_mv _mahalanobis _OfVectors
        MultivariateNormal Independent kl_divergence
    """,
    "discrete": """
        _Probs _OneProbs Bernoulli Geometric Categorical _OfCategorical OneHotCategorical
        OneHotCategoricalStraightThrough Poisson _clamp_by_zero _Trials Binomial NegativeBinomial
        Multinomial MixtureSameFamily
    """,
    "transformed": """
        Transform _InverseTransform _widened _equal ComposeTransform _Rising ExpTransform
        PowerTransform SigmoidTransform SoftplusTransform TanhTransform AbsTransform _alike
        AffineTransform TransformedDistribution LogNormal _Half HalfNormal HalfCauchy Gumbel Weibull
        Pareto Kumaraswamy LogitRelaxedBernoulli _Relaxed RelaxedBernoulli ExpRelaxedCategorical
        RelaxedOneHotCategorical
    """,
    "less_common": """
        FisherSnedecor GeneralizedPareto InverseGamma ContinuousBernoulli _polynomial _log_bessel
        VonMises LowRankMultivariateNormal _mean_log _to_exponential _to_gamma _to_normal _to_gumbel
        _normal_laplace _uniform_beta _uniform_pareto _to_uniform _to_continuous _of_normals
        _infinite _kl_between
    """,
    "lazy": """
        LazyModuleMixin _infer_parameters _Lazy LazyLinear _LazyConv LazyConvNd
        LazyConvTransposeNd _LazyNorm LazyBatchNormNd LazyInstanceNormNd
    """,
    "reparametrized": """
        ParametrizationList _require_tensors _keep _require_alike register_parametrization
        is_parametrized remove_parametrizations type_before_parametrizations
        transfer_parametrizations_and_params cached _WeightNorm
        parametrized_weight_norm _Orthogonal _made_orthogonal orthogonal _Hook _NormHook _known
        weight_norm _remove_hook remove_weight_norm _spectral_dim _flat _SpectralNorm
        parametrized_spectral_norm _SpectralHook spectral_norm remove_spectral_norm
    """,
    "packed": """
        PackedSequence pack_padded_sequence pad_packed_sequence pack_sequence unpack_sequence
        pad_sequence unpad_sequence
    """,
    "pruning": """
        BasePruningMethod PruningContainer _Kept RandomUnstructured L1Unstructured
        RandomStructured LnStructured CustomFromMask _pruning _unhook _scores _amount _count
        _without _channel_count _channels _of_channels identity custom_from_mask l1_unstructured
        random_unstructured ln_structured random_structured global_unstructured remove is_pruned
    """,
    "schedulers": """
        LRScheduler _ByFunction LambdaLR MultiplicativeLR _Factors StepLR MultiStepLR ConstantLR
        LinearLR ExponentialLR PolynomialLR CosineAnnealingLR CosineAnnealingWarmRestarts
        _for_groups _Cycling CyclicLR OneCycleLR _require_one_optimizer _undo SequentialLR
        ChainedScheduler ReduceLROnPlateau
    """,
    "averages": """
        get_ema_multi_avg_fn get_ema_avg_fn get_swa_multi_avg_fn get_swa_avg_fn AveragedModel
        update_bn SWALR
    """,
    "checkpoints": """
        CheckpointError _Recomputed _Frame _with_state CheckpointFunction checkpoint
        checkpoint_sequential
    """,
    "data": """
        _expect _is_size Dataset IterableDataset ChainDataset Subset TensorDataset ConcatDataset
        random_split
        Sampler SequentialSampler RandomSampler SubsetRandomSampler WeightedRandomSampler
        BatchSampler _batch_count DataLoader
    """,
    "argparse": """
        Namespace ArgumentParser
    """,
    "testing": """
        _Mismatch _default_tolerances _tolerances _mismatch _number_mismatch _tensor_mismatch
        _number_pair _tensor_pair _pair _pairs assert_close assert_allclose
        make_tensor
    """,
    "pathlib": """
        Path
    """,
    "drawing": """
        Drawing
    """,
    "tqdm": """
        tqdm trange
    """,
    "utilities": """
        _gradients get_total_norm clip_grads_with_norm_ clip_grad_norm_ clip_grad_norm
        clip_grad_value_ parameters_to_vector vector_to_parameters
        consume_prefix_in_state_dict_if_present
    """,
    "windows": """
        _Conv ConvNd ConvTransposeNd MaxPoolNd MaxUnpoolNd AvgPoolNd FractionalMaxPool2d
        FractionalMaxPool3d LPPoolNd AdaptiveMaxPoolNd AdaptiveAvgPoolNd _Pad _ConstantPad
        ConstantPadNd ZeroPadNd CircularPadNd ReflectionPadNd ReplicationPadNd
    """,
}

PRELUDE: dict[str, str] = {
    name.removesuffix("Nd") + size: file
    for file, text in FILES.items()
    for name in text.split()
    for size in (("1d", "2d", "3d") if name.endswith("Nd") else ("",))
}

_PREFIX = {
    "argparse": "python.argparse.",
    "pathlib": "python.pathlib.",
    "drawing": "python.drawing.",
    "tqdm": "python.tqdm.",
    "testing": "testing.",
    "checkpoints": "utils.checkpoint.",
    "data": "utils.data.",
    "schedulers": "optim.lr_scheduler.",
    "averages": "optim.swa_utils.",
    "packed": "nn.utils.rnn.",
    "pruning": "nn.utils.prune.",
    "utilities": "nn.utils.",
    "fusion": "nn.utils.fusion.",
    "gradients": "nn.grad.",
    "distributions": "distributions.",
    "discrete": "distributions.",
    "transformed": "distributions.",
    "less_common": "distributions.",
}

# Names that are no parts of a file of the library, by the Python module that has them.
_OPTIMIZERS = """
    Optimizer SGD Adam AdamW Adamax NAdam RAdam RMSprop Adagrad Adadelta Rprop ASGD LBFGS
"""
OPTIMIZERS = tuple(_OPTIMIZERS.split())
CONTAINERS = ("Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict")
_STEPS = ("rnn_step", "lstm_step", "gru_step")

_UTILITIES = """
    weight_norm spectral_norm remove_weight_norm remove_spectral_norm
    parametrize.register_parametrization parametrize.is_parametrized
    parametrize.remove_parametrizations parametrize.cached parametrize.ParametrizationList
    parametrize.type_before_parametrizations parametrize.transfer_parametrizations_and_params
"""

_CONSTRAINTS = """
    boolean lower_cholesky nonnegative nonnegative_integer one_hot positive positive_definite
    positive_integer real real_vector simplex unit_interval
"""
_OF_CONSTRAINTS = """
    Constraint greater_than greater_than_eq less_than interval half_open_interval integer_interval
    multinomial independent dependent_property
"""

# Every public path below `torch.` -> the name of what it stands for.
PATHS: dict[str, str] = {
    **{
        _PREFIX.get(file, "nn.") + name: name
        for name, file in PRELUDE.items()
        if not name.startswith("_")
        and name not in (*_STEPS, *_OF_CONSTRAINTS.split())
        and file != "reparametrized"
    },
    **{f"nn.utils.{name}": name for name in _UTILITIES.split()},
    **{f"utils.data.{name}": name for name in ("default_collate", "default_convert")},
    "nn.utils.parametrizations.weight_norm": "parametrized_weight_norm",
    "nn.utils.parametrizations.spectral_norm": "parametrized_spectral_norm",
    "nn.utils.parametrizations.orthogonal": "orthogonal",
    "distributions.kl.kl_divergence": "kl_divergence",
    **{f"distributions.constraints.{name}": name for name in _OF_CONSTRAINTS.split()},
    **{f"distributions.constraints.{name}": "_Constraints" for name in _CONSTRAINTS.split()},
    **{
        f"distributions.transforms.{name}": name
        for name in FILES["transformed"].split()
        if name.endswith("Transform") and not name.startswith("_")
    },
    **{f"nn.{name}": name for name in ("Module", *CONTAINERS)},
    **{f"optim.{name}": name for name in (*OPTIMIZERS, "required")},
    "optim.lr_scheduler._LRScheduler": "LRScheduler",
    **{f"nn.{name}": name for name in ("_BatchNorm", "_InstanceNorm", "_Loss", "_WeightedLoss")},
    **{
        f"{path}.{name}": name
        for path, file in (("nn.functional.grad", "gradients"), ("nn.utils", "fusion"))
        for name in FILES[file].split()
        if not name.startswith("_")
    },
    "nn._ConvNd": "_Conv",
    "nn.utils.prune.Identity": "_Kept",
    "nn._DropoutNd": "_Dropout",
}


def library_member(path: str) -> Any:
    """What a path of `PATHS` stands for; None for others."""
    name = PATHS.get(path, "").rpartition(".")[2]
    if not name:
        return None
    if path == f"optim.{name}":
        from .optimizers import CLASSES

        return CLASSES[name]
    if name == "Module":
        from .module_methods import MODULE

        return MODULE
    if name in CONTAINERS:
        from . import containers

        return containers.CLASSES[name]
    from .prelude import define

    found = define(name)
    if name.startswith("_") and not path.rpartition(".")[2].startswith("_"):
        found.__name__ = found.__qualname__ = path.rpartition(".")[2]  # others have that name
    return found.names[path.rpartition(".")[2]] if name == "_Constraints" else found


LIBRARY = Names(lambda: PATHS, library_member)

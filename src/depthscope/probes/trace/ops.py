"""Which operation of torch does what: tables by the name of the operation, without in-place underscore.

`Sort` is the kind as the rules of this package see it; all that a `core.structure.Op` does not tell apart, such
as mere shape, is a sort of its own here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

Sort = Literal[
    "shape",  # the same numbers in another shape, layout, dtype or order
    "part",  # some of the numbers: one entry, one piece
    "product",  # sums of products: with a parameter a linear layer, of two data tensors attention
    "conv",
    "embedding",
    "index",  # picks rows; of a parameter an embedding
    "recurrent",
    "attention",
    "norm",
    "activation",
    "multiply",
    "add",
    "concat",
    "pool",
    "dropout",
    "pad",
    "where",
    "mixing",  # mixes positions without a parameter: Fourier transforms
    "fresh",  # looks at the shape of its input only
    "other",
]


def _table(**groups: str) -> dict[str, Sort]:
    return {name: sort for sort, names in groups.items() for name in names.split()}  # type: ignore[misc]


_SORTS = _table(
    shape="view _unsafe_view reshape t transpose permute expand expand_as squeeze unsqueeze clone contiguous _to_copy "
    "to detach alias copy as_strided roll flip lift lift_fresh view_as view_as_complex view_as_real _conj conj "
    "conj_physical resolve_conj resolve_neg _neg_view pixel_shuffle pixel_unshuffle channel_shuffle "
    "native_channel_shuffle repeat movedim swapaxes diagonal flatten unflatten numpy_T real imag _reshape_alias "
    "_pin_memory type_as positive mT adjoint repeat_interleave tile im2col col2im unfold",
    part="select split split_with_sizes chunk unbind narrow slice unsafe_split unsafe_chunk unsafe_split_with_sizes "
    "tensor_split",
    product="addmm mm bmm baddbmm addbmm matmul linear mv addmv dot vdot einsum tensordot _addmm_activation inner "
    "_trilinear bilinear _int_mm _scaled_mm addr ger outer mkldnn_linear _linear mkl_linear _grouped_mm",
    conv="convolution _convolution conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc "
    "mkldnn_convolution cudnn_convolution cudnn_convolution_relu cudnn_convolution_transpose "
    "cudnn_convolution_add_relu miopen_convolution miopen_depthwise_convolution miopen_convolution_transpose "
    "convolution_overrideable _slow_conv2d_forward slow_conv3d_forward _conv_depthwise2d conv_depthwise3d "
    "slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d thnn_conv2d "
    "_nnpack_spatial_convolution _mps_convolution mps_convolution_transpose",
    embedding="embedding embedding_bag _embedding_bag _embedding_bag_forward_only embedding_renorm",
    index="index index_select gather take take_along_dim _unsafe_index _index",
    recurrent="lstm gru rnn_tanh rnn_relu _cudnn_rnn mkldnn_rnn_layer _lstm_mps miopen_rnn lstm_cell gru_cell "
    "rnn_tanh_cell rnn_relu_cell quantized_lstm",
    attention="_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu "
    "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention "
    "_scaled_dot_product_attention_math _scaled_dot_product_attention_math_for_mps scaled_dot_product_attention "
    "_scaled_dot_product_fused_attention_overrideable _flash_attention_forward _efficient_attention_forward "
    "_native_multi_head_attention _transformer_encoder_layer_fwd flex_attention",
    norm="native_batch_norm batch_norm _batch_norm_impl_index _native_batch_norm_legit "
    "_native_batch_norm_legit_no_training cudnn_batch_norm miopen_batch_norm _batch_norm_with_update "
    "_batch_norm_no_update batch_norm_with_update native_layer_norm layer_norm native_group_norm group_norm "
    "instance_norm _fused_rms_norm rms_norm",
    activation="relu leaky_relu gelu silu elu celu selu tanh sigmoid hardtanh relu6 hardswish hardsigmoid softplus "
    "mish prelu _prelu_kernel threshold _softmax softmax _safe_softmax _log_softmax log_softmax log_sigmoid "
    "log_sigmoid_forward rrelu rrelu_with_noise softshrink hardshrink clamp clamp_min clamp_max erf sin cos",
    multiply="mul div multiply divide true_divide neg negative",
    add="add sub rsub subtract addcmul lerp",
    concat="cat concat concatenate hstack vstack dstack stack _cat",
    pool="max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices "
    "avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d "
    "_adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d "
    "fractional_max_pool2d mkldnn_max_pool2d upsample_nearest1d upsample_nearest2d upsample_nearest3d "
    "_upsample_nearest_exact1d _upsample_nearest_exact2d upsample_linear1d upsample_bilinear2d upsample_trilinear3d "
    "upsample_bicubic2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa mean amax max lp_pool2d",
    dropout="native_dropout dropout alpha_dropout feature_dropout _fused_dropout",
    pad="constant_pad_nd pad reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d "
    "replication_pad3d _pad_circular",
    where="where masked_fill _masked_softmax triu tril",
    mixing="_fft_r2c _fft_c2c _fft_c2r stft istft",
    fresh="empty_like zeros_like ones_like full_like rand_like randn_like randint_like new_empty new_zeros new_ones "
    "new_full new_empty_strided empty_strided size sym_size _local_scalar_dense _has_compatible_shallow_copy_type "
    "_use_cudnn_rnn_flatten_weight is_same_size _fused_sdp_choice zero fill bernoulli normal uniform exponential "
    "random numel sym_numel",
)

_NAMES: Mapping[str, str] = {
    "_softmax": "softmax",
    "_safe_softmax": "softmax",
    "_log_softmax": "log_softmax",
    "_prelu_kernel": "prelu",
    "rrelu_with_noise": "rrelu",
    "log_sigmoid_forward": "log_sigmoid",
    "_to_copy": "to",
    "_unsafe_view": "view",
    "_convolution": "convolution",
    "subtract": "sub",
    "native_dropout": "dropout",
    "mkldnn_rnn_layer": "lstm",
}


@dataclass(frozen=True, kw_only=True)
class OpInfo:
    """What an operation's name and schema tell.

    Attributes:
        base: its name without namespace, overload and in-place underscore.
        sort: see `Sort`.
        known: it is one of torch's own.
        arguments: names of its arguments in order.
        writes: positions of the arguments that it changes in place.
        write_names: names of those.
        views: its output shares the memory of its input.
    """

    base: str
    sort: Sort
    known: bool = True
    arguments: tuple[str, ...] = ()
    writes: tuple[int, ...] = ()
    write_names: frozenset[str] = field(default_factory=frozenset)
    views: bool = False

    @property
    def name(self) -> str:
        """The name to show."""
        return _NAMES.get(self.base, self.base)

    def argument(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], default: Any = None) -> Any:
        """An argument by its name, wherever it was given."""
        if name in kwargs:
            return kwargs[name]
        if name in self.arguments and (at := self.arguments.index(name)) < len(args):
            return args[at]
        return default


@lru_cache(maxsize=4096)
def info_of(func: Any) -> OpInfo:
    """The facts of an operation (an `OpOverload`; of anything else only its name)."""
    schema = getattr(func, "_schema", None)
    if schema is None:
        return OpInfo(base=str(getattr(func, "__name__", func)), sort="other", known=False)
    space, _, base = schema.name.partition("::")
    if base.endswith("_") and not base.endswith("__"):
        base = base[:-1]
    writes = tuple(
        at for at, each in enumerate(schema.arguments) if each.alias_info is not None and each.alias_info.is_write
    )
    known = space in ("aten", "prims", "mkldnn")
    return OpInfo(
        base=base,
        sort=_SORTS.get(base, "other") if known else "other",
        known=known,
        arguments=tuple(each.name for each in schema.arguments),
        writes=writes,
        write_names=frozenset(schema.arguments[at].name for at in writes),
        views=any(each.alias_info is not None and not each.alias_info.is_write for each in schema.returns),
    )

"""minitorch: a small, complete, readable PyTorch on NumPy, for learning data-parallel training.

``import minitorch as torch`` runs CPU scripts written for the PyTorch subset that exists here.
Importing it loads no MPI and needs no compiled core; ``minitorch.distributed`` is loaded on first
use.
"""

from __future__ import annotations

import importlib
import math
import warnings
from typing import Any

from minitorch import _legacy, autograd, dtypes
from minitorch._environment import (
    are_deterministic_algorithms_enabled,
    backends,
    cuda,
    get_float32_matmul_precision,
    get_num_interop_threads,
    get_num_threads,
    set_float32_matmul_precision,
    set_num_threads,
    use_deterministic_algorithms,
)
from minitorch._repr import set_printoptions
from minitorch.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from minitorch.creation import (
    arange,
    as_tensor,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    from_numpy,
    frombuffer,
    full,
    full_like,
    linspace,
    logspace,
    ones,
    ones_like,
    scalar_tensor,
    tensor,
    tril_indices,
    triu_indices,
    zeros,
    zeros_like,
)
from minitorch.device import device
from minitorch.dtypes import (
    can_cast,
    dtype,
    finfo,
    get_default_dtype,
    iinfo,
    promote_types,
    result_type,
    set_default_dtype,
)
from minitorch.ops import methods as _methods
from minitorch.ops.softmax import log_softmax, softmax
from minitorch.sparse import sparse_coo_tensor
from minitorch.tensor import Size, Tensor

globals().update(dtypes.NAMED)  # minitorch.float32, minitorch.long, ...
globals().update(_legacy.TYPES)  # minitorch.FloatTensor, ...
globals().update(_methods.functions())  # minitorch.exp, minitorch.matmul, ...

# Above the tensor: these import the names made above.
from minitorch import amp, linalg, nn, optim, random, utils  # noqa: E402
from minitorch.amp import autocast, get_autocast_dtype, is_autocast_enabled  # noqa: E402
from minitorch.random import (  # noqa: E402
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from minitorch.random import factories as _random_factories  # noqa: E402
from minitorch.random import inplace as _random_inplace  # noqa: E402
from minitorch.serialization import load, save  # noqa: E402

for _name in _random_factories.__all__:
    globals()[_name] = getattr(_random_factories, _name)
softmax, log_softmax = _methods.numpy_keywords(softmax), _methods.numpy_keywords(log_softmax)
_late_methods = {
    "softmax": softmax,
    "log_softmax": log_softmax,
    "bernoulli": _random_factories.bernoulli,
    "multinomial": _random_factories.multinomial,
    **_random_inplace.METHODS,
}
for _name, _method in _late_methods.items():
    setattr(Tensor, _name, _method)

# The functions of nn.functional that PyTorch also has here under the same signature.
_TOP_LEVEL = (
    "adaptive_avg_pool1d adaptive_max_pool1d avg_pool1d bilinear celu conv1d conv2d "
    "conv_transpose1d conv_transpose2d cosine_similarity dropout hardshrink max_pool1d max_pool2d "
    "pairwise_distance prelu rms_norm selu"
)
for _name in _TOP_LEVEL.split():
    globals()[_name] = getattr(nn.functional, _name)

# log(0), inf - inf and overflow are values here, as in PyTorch; NumPy would warn about them. Not
# done by `np.errstate` around each op: entering it takes a third of what a small op takes in all.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"minitorch\.")

inf, nan, pi, e = math.inf, math.nan, math.pi, math.e
strided, contiguous_format, preserve_format = "torch.strided", None, None
__version__ = "0.1.0"


def is_tensor(obj: Any) -> bool:
    """Return whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Return whether the tensor's type is floating."""
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Return False: there are no complex tensors."""
    return input.is_complex()


def is_nonzero(input: Tensor) -> bool:
    """Return whether a tensor's single element is not zero."""
    return input.is_nonzero()


def detach(input: Tensor) -> Tensor:
    """Return a tensor that shares memory with `input` but not its history."""
    return input.detach()


def numel(input: Tensor) -> int:
    """Return the number of elements."""
    return input.numel()


# Loaded on first use, so that `import minitorch` needs neither MPI nor the compiled core.
_LAZY = ("datasets", "distributed", "futures", "profiler")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"minitorch.{name}")
    raise AttributeError(f"module 'minitorch' has no attribute '{name}'")

"""float16 and bfloat16: computed in float32 and rounded once.

The right value is the same op in float64 on the same (rounded) inputs; result and gradients may
differ from it by a unit in the last place of their largest element, not by what many roundings, or
a sum in 16 bits, would lose.
"""

import numpy as np
import pytest

import minitorch
import minitorch.nn.functional as F

SHAPE = (37, 29)
CLASSES = minitorch.arange(37) % 29
ROWS = (minitorch.arange(999) * 7) % 5
BINS = minitorch.zeros(3000, dtype=minitorch.int64)


def _losses():
    # Targets that no rounding changes: 1/4 and 3/4.
    def target(b):
        return 0.5 + 0.25 * b.detach().sign()

    for reduction in ("mean", "sum", "none"):
        how = {"reduction": reduction}
        yield f"mse {reduction}", lambda a, b, how=how: F.mse_loss(a, b, **how), (SHAPE, SHAPE)
        yield f"l1 {reduction}", lambda a, b, how=how: F.l1_loss(a, b, **how), (SHAPE, SHAPE)
        yield (
            f"smooth_l1 {reduction}",
            lambda a, b, how=how: F.smooth_l1_loss(a, b, beta=0.7, **how),
            (SHAPE, SHAPE),
        )
        yield (
            f"huber {reduction}",
            lambda a, b, how=how: F.huber_loss(a, b, delta=0.7, **how),
            (SHAPE, SHAPE),
        )
        yield (
            f"bce with logits {reduction}",
            lambda a, b, how=how: F.binary_cross_entropy_with_logits(a, target(b), **how),
            (SHAPE, SHAPE),
        )
        yield (
            f"kl {reduction}",
            lambda a, b, how=how: F.kl_div(a, target(b), **how),
            (SHAPE, SHAPE),
        )
        yield f"ce {reduction}", lambda a, how=how: F.cross_entropy(a, CLASSES, **how), (SHAPE,)
        yield (
            f"ce smoothed {reduction}",
            lambda a, how=how: F.cross_entropy(a, CLASSES, label_smoothing=0.1, **how),
            (SHAPE,),
        )
        yield (
            f"ce of probabilities {reduction}",
            lambda a, b, how=how: F.cross_entropy(a, target(b), **how),
            (SHAPE, SHAPE),
        )
        yield f"nll {reduction}", lambda a, how=how: F.nll_loss(a, CLASSES, **how), (SHAPE,)


OPS = [
    *_losses(),
    ("rms_norm", lambda a, b: F.rms_norm(a, (29,), b, eps=1e-6), (SHAPE, (29,))),
    ("rms_norm of large", lambda a: F.rms_norm(a * 300, (29,), eps=1e-6), (SHAPE,)),
    ("layer_norm", lambda a, b, c: F.layer_norm(a, (29,), b, c), (SHAPE, (29,), (29,))),
    ("group_norm", lambda a, b, c: F.group_norm(a, 2, b, c), ((3, 4, 5), (4,), (4,))),
    (
        "batch_norm",
        lambda a, b, c: F.batch_norm(a, None, None, b, c, True),
        ((33, 4, 5), (4,), (4,)),
    ),
    (
        "batch_norm in evaluation",
        lambda a, b, c: F.batch_norm(a, b.detach(), c.detach().exp(), b, c),
        ((33, 4, 5), (4,), (4,)),
    ),
    ("normalize", lambda a: F.normalize(a), (SHAPE,)),
    ("normalize of large", lambda a: F.normalize(a * 300), (SHAPE,)),
    ("cosine_similarity", F.cosine_similarity, (SHAPE, SHAPE)),
    ("pairwise_distance", F.pairwise_distance, (SHAPE, SHAPE)),
    ("norm", lambda a: a.norm(), ((4000,),)),
    ("norm 1", lambda a: a.norm(1, dim=1), (SHAPE,)),
    ("norm 3", lambda a: a.norm(3, dim=1), (SHAPE,)),
    ("mean beyond float16", lambda a: (a + 100).mean(), ((3000,),)),
    ("var", lambda a: a.var(1), ((5, 3000),)),
    ("std", lambda a: (a * 300).std(1), ((5, 3000),)),
    ("prod", lambda a: (a * 0.02 + 1).prod(0), ((7,),)),
    ("cumprod", lambda a: (a * 0.02 + 1).cumprod(0), ((7,),)),
    ("cumsum", lambda a: a.cumsum(0), ((3000,),)),
    ("logsumexp", lambda a: a.logsumexp(1), ((5, 3000),)),
    ("softmax", lambda a: a.softmax(1), ((5, 300),)),
    ("log_softmax", lambda a: a.log_softmax(1), ((5, 300),)),
    ("scatter_add", lambda a, b: a.scatter_add(0, ROWS, b), ((5,), (999,))),
    ("index_add", lambda a, b: a.index_add(0, ROWS, b, alpha=0.3), ((5,), (999,))),
    ("index_put", lambda a, b: a.index_put((ROWS,), b, accumulate=True), ((5,), (999,))),
    ("gather", lambda a: a.gather(0, ROWS), ((5,),)),
    ("index", lambda a: a[ROWS], ((5,),)),
    ("embedding", lambda a: F.embedding(ROWS, a), ((5, 4),)),
    ("expand", lambda a: a.expand(999, 5), ((5,),)),
    ("linear", F.linear, ((300, 50), (7, 50), (7,))),
    ("conv2d", lambda a, b, c: F.conv2d(a, b, c, padding=1), ((5, 3, 9, 9), (4, 3, 3, 3), (4,))),
    ("avg_pool2d", lambda a: F.avg_pool2d(a, 3, 1), ((2, 3, 9, 9),)),
    ("max_pool2d", lambda a: F.max_pool2d(a, 3, 1), ((2, 3, 9, 9),)),
    ("adaptive_avg_pool2d", lambda a: F.adaptive_avg_pool2d(a, (2, 5)), ((2, 3, 9, 9),)),
    ("attention", F.scaled_dot_product_attention, ((2, 5, 8), (2, 6, 8), (2, 6, 8))),
    *[
        (name, getattr(F, name), ((40,),))
        for name in (
            "gelu",
            "silu",
            "mish",
            "softplus",
            "elu",
            "selu",
            "logsigmoid",
            "hardswish",
            "tanh",
            "sigmoid",
            "softsign",
            "tanhshrink",
        )
    ],
    ("rsqrt", lambda a: (a.abs() + 0.1).rsqrt(), ((40,),)),
    ("lerp", lambda a, b: a.lerp(b, 0.3), ((40,), (40,))),
    ("addcmul", lambda a, b, c: a.addcmul(b, c, value=0.3), ((40,), (40,), (40,))),
    ("add with alpha", lambda a, b: a.add(b, alpha=0.1), ((40,), (40,))),
    ("times a number", lambda a: a * 0.1, ((40,),)),
    ("over a number", lambda a: a / 3, ((40,),)),
]
LAST_PLACE = {"float16": 2.0**-10, "bfloat16": 2.0**-7}


def run(function, arrays, dtype):
    """Return the result and the gradients, as float64 arrays."""
    inputs = [minitorch.from_numpy(x).to(dtype).requires_grad_() for x in arrays]
    out = function(*inputs)
    weights = np.random.default_rng(9).standard_normal(out.shape or 1).reshape(out.shape)
    # The gradient that comes in shall be the same in both types.
    out.backward(minitorch.from_numpy(weights).bfloat16().to(dtype))
    grads = [each.grad for each in inputs if each.grad is not None]
    return [x.detach().double().numpy() for x in (out, *grads)]


@pytest.mark.filterwarnings("ignore:reduction. 'mean'")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("name", "function", "shapes"), OPS, ids=[op[0] for op in OPS])
def test_rounded_once(name, function, shapes, dtype):
    short = getattr(minitorch, dtype)
    rng = np.random.default_rng(0)
    arrays = [
        minitorch.from_numpy(rng.standard_normal(shape)).to(short).double().numpy()
        for shape in shapes
    ]
    exact = run(function, arrays, minitorch.float64)
    mine = run(function, arrays, short)
    for got, want in zip(mine, exact, strict=True):
        scale = np.abs(want).max(initial=0)
        assert np.abs(got - want).max(initial=0) <= 1.25 * LAST_PLACE[dtype] * scale


def test_sums_run_in_float32():
    ones = minitorch.ones(3000, dtype=minitorch.bfloat16)
    zero = minitorch.zeros(1, dtype=minitorch.bfloat16)
    want = ones.float().sum().bfloat16().item()
    assert zero.scatter_add(0, BINS, ones).item() == want
    assert zero.index_add(0, BINS, ones).item() == want
    assert zero.clone().index_put_((BINS,), ones, accumulate=True).item() == want
    assert ones.sum().item() == want


@pytest.mark.parametrize(
    ("types", "result"),
    [
        (("float16",), "float16"),
        (("bfloat16",), "bfloat16"),
        (("float16", "float32"), "float32"),
        (("float32", "float16"), "float32"),
        (("bfloat16", "float16"), "float32"),
        (("float64", "float16"), "float64"),
    ],
)
def test_clip_grad_norm_promotes_as_pytorch(types, result):
    """Recorded with PyTorch 2.13: the norm has the type that the gradients' types promote to."""
    parameters = []
    for name in types:
        p = minitorch.nn.Parameter(minitorch.ones(3000, dtype=getattr(minitorch, name)))
        p.grad = minitorch.full((3000,), 0.1, dtype=p.dtype)
        parameters.append(p)
    total = minitorch.nn.utils.clip_grad_norm_(parameters, 1.0)
    assert total.dtype is getattr(minitorch, result)
    assert total.item() == pytest.approx((0.01 * 3000 * len(types)) ** 0.5, rel=2e-3)
    for p in parameters:
        assert p.grad.dtype is p.dtype
        assert p.grad[0].item() == pytest.approx(0.1 / total.item(), rel=1e-2)


def test_autocast_still_gives_float32_losses():
    a = minitorch.ones(4, dtype=minitorch.bfloat16)
    with minitorch.autocast("cpu"):
        assert F.mse_loss(a, a * 0.5).dtype is minitorch.float32


def test_the_node_keeps_the_name_of_the_op():
    x = minitorch.ones(3, dtype=minitorch.bfloat16, requires_grad=True)
    assert x.rsqrt().grad_fn.name() == "RsqrtBackward0"
    assert F.softplus(x).grad_fn.name() == "SoftplusBackward0"

"""Every layer and function, with options, as expressions that run here and under PyTorch.

``record_nn.py`` evaluates them under PyTorch and keeps outputs and gradients; the tests evaluate
the same expressions here. Inputs and parameters come from a NumPy generator seeded by the case's name,
so only results have to be kept.

Inputs are described by: ``f`` normal floats (differentiated), ``c`` constant floats, ``p`` floats
in (0, 1) (differentiated), ``i(high, ...)`` integers, ``b`` booleans.
"""

# ruff: noqa: E501 - the tables read best with one case a line

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    name: str
    call: str  # in terms of F, torch, the inputs by name, and m
    inputs: dict[str, str]
    module: str | None = None


def _functions(table: str) -> list[Case]:
    """Parse lines ``call | name=spec; name=spec``."""
    cases = []
    for number, line in enumerate(table.strip().splitlines()):
        call, _, specs = line.partition("|")
        inputs = dict(part.strip().split("=", 1) for part in specs.split(";") if part.strip())
        word = call.strip().split("(")[0].replace("F.", "").replace("torch.", "")
        cases.append(Case(f"{word}_{number}", call.strip(), inputs))
    return cases


def _modules(table: str) -> list[Case]:
    """Parse lines ``constructor | call | name=spec; ...``."""
    cases = []
    for number, line in enumerate(table.strip().splitlines()):
        module, call, specs = (part.strip() for part in line.split("|"))
        inputs = dict(part.strip().split("=", 1) for part in specs.split(";") if part.strip())
        word = module.split("(")[0].replace("nn.", "")
        cases.append(Case(f"{word}_{number}", call, inputs, module))
    return cases


FUNCTIONS = _functions("""
F.conv1d(x, w, b) | x=f(2,3,7); w=f(4,3,3); b=f(4)
F.conv1d(x, w, None, stride=2, padding=1, dilation=2) | x=f(2,2,9); w=f(3,2,3)
F.conv1d(x, w, b, padding='same') | x=f(2,2,5); w=f(2,2,4); b=f(2)
F.conv1d(x, w, b, groups=2) | x=f(2,4,5); w=f(2,2,3); b=f(2)
F.conv1d(x, w, b) | x=f(3,7); w=f(2,3,3); b=f(2)
F.conv2d(x, w, b) | x=f(2,2,5,4); w=f(3,2,3,2); b=f(3)
F.conv2d(x, w, b, padding=1) | x=f(2,2,4,5); w=f(3,2,3,3); b=f(3)
F.conv2d(x, w, b, stride=2, padding=(1,0)) | x=f(2,2,5,6); w=f(3,2,3,3); b=f(3)
F.conv2d(x, w, None, stride=(2,3), dilation=(1,2)) | x=f(1,2,6,8); w=f(2,2,2,3)
F.conv2d(x, w, b, groups=2, padding=1) | x=f(2,4,4,4); w=f(4,2,3,3); b=f(4)
F.conv2d(x, w, b, groups=3, stride=2, padding=1) | x=f(2,3,5,5); w=f(6,1,3,3); b=f(6)
F.conv2d(x, w, b, padding='same', dilation=2) | x=f(1,2,5,5); w=f(2,2,3,2); b=f(2)
F.conv2d(x, w, b, padding='valid') | x=f(1,2,3,3); w=f(2,2,3,3); b=f(2)
F.conv2d(x, w) | x=f(2,4,5); w=f(3,2,1,1)
F.conv2d(x, w, padding=3) | x=f(1,1,2,3); w=f(2,1,2,2)
F.conv_transpose1d(x, w, b, stride=2, output_padding=1) | x=f(2,3,4); w=f(3,2,3); b=f(2)
F.conv_transpose2d(x, w, b) | x=f(2,3,3,2); w=f(3,2,3,2); b=f(2)
F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1) | x=f(1,3,3,3); w=f(3,2,3,3); b=f(2)
F.conv_transpose2d(x, w, None, groups=2, dilation=2, padding=1) | x=f(1,4,3,3); w=f(4,2,2,2)
F.max_pool1d(x, 2) | x=f(2,3,6)
F.max_pool1d(x, 3, 2, 1, ceil_mode=True) | x=f(2,2,8)
F.max_pool2d(x, 2) | x=f(2,2,4,6)
F.max_pool2d(x, 3, stride=1, padding=1) | x=f(1,2,4,4)
F.max_pool2d(x, 3, stride=2, ceil_mode=True) | x=f(1,2,6,6)
F.max_pool2d(x, 2, dilation=2) | x=f(1,2,5,5)
F.max_pool2d(x.round(), 2) | x=f(2,2,4,4)
F.max_pool2d(x, 2, return_indices=True) | x=f(2,2,4,4)
F.max_pool2d(x, 3, 2, 1, return_indices=True) | x=f(3,5,5)
F.avg_pool1d(x, 3, 1, 1) | x=f(2,2,5)
F.avg_pool2d(x, 2) | x=f(2,2,4,5)
F.avg_pool2d(x, 3, 2, 1, count_include_pad=False) | x=f(1,2,5,5)
F.avg_pool2d(x, 3, 2, 1, ceil_mode=True) | x=f(1,2,6,6)
F.avg_pool2d(x, (2,3), divisor_override=5) | x=f(2,4,6)
F.adaptive_avg_pool1d(x, 3) | x=f(2,2,7)
F.adaptive_avg_pool2d(x, 1) | x=f(2,2,3,4)
F.adaptive_avg_pool2d(x, (2, 3)) | x=f(2,2,5,7)
F.adaptive_avg_pool2d(x, (None, 2)) | x=f(2,2,3,4)
F.adaptive_max_pool1d(x, 3) | x=f(2,2,7)
F.adaptive_max_pool2d(x, (2, 3)) | x=f(2,2,5,7)
F.adaptive_max_pool2d(x, 2, return_indices=True) | x=f(2,2,5,5)
F.batch_norm(x, None, None, w, b, training=True) | x=f(4,3); w=f(3); b=f(3)
F.batch_norm(x, None, None, training=True, eps=0.1) | x=f(2,3,2,2)
F.batch_norm(x, m, v, w, b) | x=f(4,3,2); m=c(3); v=q(3); w=f(3); b=f(3)
F.layer_norm(x, (3,)) | x=f(4,3)
F.layer_norm(x, (2, 3), w, b, 0.01) | x=f(2,2,3); w=f(2,3); b=f(2,3)
F.group_norm(x, 2, w, b) | x=f(2,4,3); w=f(4); b=f(4)
F.instance_norm(x) | x=f(2,2,3,2)
F.rms_norm(x, (3,), w) | x=f(2,3); w=f(3)
F.softmax(x, 1) | x=f(2,3)
F.softmax(x, 0, dtype=torch.float64) | x=f(2,3)
F.log_softmax(x, -1) | x=f(2,2,3)
F.softmin(x, 1) | x=f(2,3)
F.cross_entropy(x, t) | x=f(4,3); t=i(3,4)
F.cross_entropy(x, t, reduction='sum') | x=f(4,3); t=i(3,4)
F.cross_entropy(x, t, reduction='none') | x=f(2,3,2); t=i(3,2,2)
F.cross_entropy(x, t, weight=w) | x=f(4,3); t=i(3,4); w=q(3)
F.cross_entropy(x, t, weight=w, ignore_index=1, label_smoothing=0.1) | x=f(5,3); t=i(3,5); w=q(3)
F.cross_entropy(x, t, ignore_index=0) | x=f(5,3); t=i(3,5)
F.cross_entropy(x, t, label_smoothing=0.2, reduction='none') | x=f(2,3,2); t=i(3,2,2)
F.cross_entropy(x, t) | x=f(4,3); t=p(4,3)
F.cross_entropy(x, t, weight=w, label_smoothing=0.1, reduction='sum') | x=f(2,3,2); t=p(2,3,2); w=q(3)
F.cross_entropy(x, t[0]) | x=f(3); t=i(3,1)
F.nll_loss(x, t) | x=f(4,3); t=i(3,4)
F.nll_loss(x, t, weight=w, ignore_index=2, reduction='sum') | x=f(4,3); t=i(3,4); w=q(3)
F.nll_loss(x, t, reduction='none') | x=f(2,3,2,2); t=i(3,2,2,2)
F.mse_loss(x, y) | x=f(2,3); y=f(2,3)
F.mse_loss(x, y, reduction='none') | x=f(2,3); y=f(2,3)
F.mse_loss(x, y, weight=w) | x=f(2,3); y=f(2,3); w=q(2,3)
F.l1_loss(x, y, reduction='sum') | x=f(2,3); y=f(2,3)
F.smooth_l1_loss(x, y, beta=0.5) | x=f(3,3); y=f(3,3)
F.smooth_l1_loss(x, y, beta=0.0) | x=f(2,3); y=f(2,3)
F.huber_loss(x, y, delta=0.7) | x=f(3,3); y=f(3,3)
F.binary_cross_entropy(x, t) | x=p(2,3); t=p(2,3)
F.binary_cross_entropy(x, t, weight=w, reduction='sum') | x=p(2,3); t=c01(2,3); w=q(3)
F.binary_cross_entropy_with_logits(x, t) | x=f(2,3); t=p(2,3)
F.binary_cross_entropy_with_logits(x * 50, t, pos_weight=w, weight=v) | x=f(2,3); t=p(2,3); w=q(3); v=q(2,3)
F.kl_div(x, t, reduction='batchmean') | x=f(2,3); t=p(2,3)
F.kl_div(x, t, reduction='sum', log_target=True) | x=f(2,3); t=f(2,3)
F.embedding(i, w) | i=i(5,2,3); w=f(5,2)
F.embedding(i, w, padding_idx=1) | i=i(3,4); w=f(3,2)
F.embedding(i, w, scale_grad_by_freq=True) | i=i(3,6); w=f(3,2)
F.one_hot(i, 4) | i=i(4,2,2)
F.leaky_relu(x, 0.2) | x=f(2,4)
F.hardtanh(x, -0.5, 0.7) | x=f(2,4)
F.relu6(x * 5) | x=f(2,4)
F.relu(x) | x=f(2,4)
F.hardsigmoid(x * 3) | x=f(2,4)
F.hardswish(x * 3) | x=f(2,6)
F.threshold(x, 0.1, 2.0) | x=f(2,4)
F.hardshrink(x) | x=f(2,4)
F.softshrink(x, 0.3) | x=f(2,4)
F.prelu(x, w) | x=f(2,3,2); w=f(3)
F.prelu(x, w) | x=f(2,3); w=f(1)
F.silu(x) | x=f(2,4)
F.logsigmoid(x * 30) | x=f(2,4)
F.elu(x, 0.7) | x=f(2,4)
F.selu(x) | x=f(2,4)
F.celu(x, 0.7) | x=f(2,4)
F.mish(x * 4) | x=f(2,4)
F.gelu(x) | x=f(2,4)
F.gelu(x, approximate='tanh') | x=f(2,4)
F.softplus(x, 2.0, 1.0) | x=f(2,4)
F.softsign(x) | x=f(2,4)
F.tanhshrink(x) | x=f(2,4)
F.glu(x, 1) | x=f(2,4)
F.scaled_dot_product_attention(q, k, v) | q=f(2,2,3,4); k=f(2,2,5,4); v=f(2,2,5,3)
F.scaled_dot_product_attention(q, k, v, is_causal=True) | q=f(2,3,4); k=f(2,3,4); v=f(2,3,4)
F.scaled_dot_product_attention(q, k, v, attn_mask=m, scale=0.3) | q=f(2,3,4); k=f(2,3,4); v=f(2,3,4); m=b(3,3)
F.scaled_dot_product_attention(q, k, v, attn_mask=m) | q=f(2,3,4); k=f(2,3,4); v=f(2,3,4); m=f(3,3)
F.scaled_dot_product_attention(q, k, v, enable_gqa=True) | q=f(1,4,3,2); k=f(1,2,3,2); v=f(1,2,3,2)
F.linear(x, w, b) | x=f(2,3,4); w=f(2,4); b=f(2)
F.bilinear(x, y, w, b) | x=f(2,3); y=f(2,4); w=f(2,3,4); b=f(2)
F.pad(x, (1, 2), 'constant', 0.5) | x=f(2,3)
F.pad(x, (1, 2, 2, 1), 'reflect') | x=f(1,2,3,4)
F.pad(x, (1, 2), 'replicate') | x=f(1,2,3)
F.pad(x, (2, 1), 'circular') | x=f(1,2,3)
F.normalize(x, dim=1) | x=f(2,3)
F.cosine_similarity(x, y) | x=f(2,3); y=f(2,3)
F.pairwise_distance(x, y) | x=f(2,3); y=f(2,3)
""")

MODULES = _modules("""
nn.Linear(3, 2) | m(x) | x=f(4,3)
nn.Linear(3, 2, bias=False) | m(x) | x=f(2,2,3)
nn.Bilinear(2, 3, 2) | m(x, y) | x=f(4,2); y=f(4,3)
nn.Conv1d(2, 3, 3, stride=2, padding=1) | m(x) | x=f(2,2,6)
nn.Conv2d(2, 3, 3, padding=1) | m(x) | x=f(2,2,4,4)
nn.Conv2d(2, 4, (3, 2), stride=(2, 1), dilation=(1, 2), groups=2, bias=False) | m(x) | x=f(2,2,5,5)
nn.Conv2d(2, 2, 3, padding='same', padding_mode='reflect') | m(x) | x=f(1,2,4,4)
nn.Conv2d(1, 2, 3, padding=1, padding_mode='circular') | m(x) | x=f(1,1,4,4)
nn.ConvTranspose1d(2, 3, 3, stride=2) | m(x, output_size=[8]) | x=f(1,2,3)
nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=1) | m(x) | x=f(1,2,3,3)
nn.MaxPool1d(2) | m(x) | x=f(2,2,6)
nn.MaxPool2d(3, stride=2, padding=1) | m(x) | x=f(1,2,5,5)
nn.AvgPool1d(2) | m(x) | x=f(2,2,6)
nn.AvgPool2d(2, padding=1, count_include_pad=False) | m(x) | x=f(1,2,4,4)
nn.AdaptiveAvgPool2d((2, 2)) | m(x) | x=f(1,2,5,5)
nn.AdaptiveMaxPool1d(2) | m(x) | x=f(1,2,5)
nn.BatchNorm1d(3) | m(x) | x=f(5,3)
nn.BatchNorm1d(3, momentum=None) | m(x); y = m(x * 2 + 1) | x=f(4,3,2)
nn.BatchNorm2d(2) | m(x) | x=f(3,2,2,3)
nn.BatchNorm2d(2).eval() | m(x) | x=f(3,2,2,3)
nn.BatchNorm2d(2, affine=False, track_running_stats=False).eval() | m(x) | x=f(3,2,2,3)
nn.LayerNorm((2, 3)) | m(x) | x=f(2,2,3)
nn.LayerNorm(3, bias=False) | m(x) | x=f(2,3)
nn.GroupNorm(2, 4) | m(x) | x=f(2,4,3)
nn.InstanceNorm2d(2, affine=True, track_running_stats=True) | m(x) | x=f(2,2,3,2)
nn.RMSNorm(3) | m(x) | x=f(2,3)
nn.Embedding(5, 3, padding_idx=1) | m(i) | i=i(5,2,4)
nn.Embedding(5, 3, max_norm=1.0) | m(i) | i=i(5,4)
nn.Flatten() | m(x) | x=f(2,2,3)
nn.Unflatten(1, (2, 3)) | m(x) | x=f(2,6)
nn.ReLU(inplace=True) | m(x * 1) | x=f(2,3)
nn.PReLU(3) | m(x) | x=f(2,3,2)
nn.Softmax2d() | m(x) | x=f(1,3,2,2)
nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2), nn.LogSoftmax(1)) | m(x) | x=f(3,3)
nn.RNNCell(3, 2) | m(x, h) | x=f(2,3); h=f(2,2)
nn.RNNCell(3, 2, nonlinearity='relu') | m(x) | x=f(2,3)
nn.LSTMCell(3, 2) | m(x, (h, c)) | x=f(2,3); h=f(2,2); c=f(2,2)
nn.LSTMCell(3, 2, bias=False) | m(x) | x=f(3)
nn.LSTMCell(3, 2) | m(x, (h, c))[1] | x=f(2,3); h=f(2,2); c=f(2,2)
nn.GRUCell(3, 2) | m(x, h) | x=f(2,3); h=f(2,2)
nn.GRUCell(3, 2, bias=False) | m(x) | x=f(2,3)
nn.RNN(3, 2) | m(x) | x=f(4,2,3)
nn.RNN(3, 2, nonlinearity='relu', batch_first=True) | m(x, h) | x=f(2,3,3); h=f(1,2,2)
nn.LSTM(3, 2) | m(x, (h, c)) | x=f(4,2,3); h=f(1,2,2); c=f(1,2,2)
nn.LSTM(3, 2, batch_first=True, bias=False) | m(x) | x=f(2,4,3)
nn.LSTM(3, 2) | m(x) | x=f(4,3)
nn.GRU(3, 2) | m(x, h) | x=f(3,2,3); h=f(1,2,2)
nn.GRU(3, 2, batch_first=True) | m(x) | x=f(2,3,3)
nn.MultiheadAttention(4, 2) | m(x, x, x) | x=f(3,2,4)
nn.MultiheadAttention(4, 2) | m(q, k, v, need_weights=False) | q=f(3,2,4); k=f(5,2,4); v=f(5,2,4)
nn.MultiheadAttention(4, 2, batch_first=True, kdim=3, vdim=5) | m(q, k, v, average_attn_weights=False) | q=f(2,3,4); k=f(2,4,3); v=f(2,4,5)
nn.MultiheadAttention(4, 2, bias=False, add_bias_kv=True, add_zero_attn=True) | m(x, x, x, key_padding_mask=p) | x=f(3,2,4); p=pad(2,3)
nn.MultiheadAttention(4, 2, batch_first=True) | m(x, x, x, attn_mask=a, key_padding_mask=p, need_weights=False) | x=f(2,3,4); a=f(3,3); p=pad(2,3)
nn.MultiheadAttention(4, 2) | m(x, x, x, attn_mask=torch.ones(3, 3).triu(1).bool()) | x=f(3,4)
nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0) | m(x) | x=f(3,2,4)
nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, activation='gelu', batch_first=True, norm_first=True) | m(x, src_key_padding_mask=p) | x=f(2,3,4); p=pad(2,3)
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, batch_first=True), 2) | m(x) | x=f(2,3,4)
nn.CrossEntropyLoss(label_smoothing=0.1) | m(x, t) | x=f(3,4); t=i(4,3)
nn.NLLLoss() | m(x, t) | x=f(3,4); t=i(4,3)
nn.MSELoss(reduction='sum') | m(x, y) | x=f(2,3); y=f(2,3)
nn.BCEWithLogitsLoss() | m(x, t) | x=f(2,3); t=p(2,3)
nn.SmoothL1Loss() | m(x, y) | x=f(2,3); y=f(2,3)
nn.HuberLoss() | m(x, y) | x=f(2,3); y=f(2,3)
nn.KLDivLoss(reduction='batchmean') | m(x, t) | x=f(2,3); t=p(2,3)
nn.CosineSimilarity() | m(x, y) | x=f(2,3); y=f(2,3)
nn.ZeroPad2d(1) | m(x) | x=f(1,1,2,2)
nn.ReplicationPad1d(2) | m(x) | x=f(1,2,3)
""")


def generator(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def make_input(spec: str, rng: np.random.Generator) -> tuple[np.ndarray, bool]:
    """Return the array that `spec` describes, and whether to differentiate with respect to it."""

    def padding(rows: int, columns: int) -> np.ndarray:
        mask = np.zeros((rows, columns), bool)
        mask[0, -1] = True
        return mask

    kinds: dict[str, Callable[..., tuple[np.ndarray, bool]]] = {
        "f": lambda *shape: (rng.standard_normal(shape), True),
        "c": lambda *shape: (rng.standard_normal(shape), False),
        "p": lambda *shape: (rng.uniform(0.05, 0.95, shape), True),
        "q": lambda *shape: (rng.uniform(0.3, 2.0, shape), False),
        "c01": lambda *shape: (rng.integers(0, 2, shape).astype(float), False),
        "i": lambda high, *shape: (rng.integers(0, high, shape), False),
        "b": lambda *shape: (rng.uniform(size=shape) < 0.5, False),
        "pad": lambda *shape: (padding(*shape), False),
    }
    return eval(spec, {"__builtins__": {}}, kinds)


def evaluate(case: Case, torch: Any) -> dict[str, np.ndarray]:
    """Run a case under `torch` (PyTorch or minitorch) in float64; return results by name."""
    rng = generator(case.name)
    names: dict[str, Any] = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    leaves = {}
    module = None
    previous = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        if case.module is not None:
            module = names["m"] = eval(case.module, names)
            values = {
                key: torch.from_numpy(
                    rng.uniform(0.2, 1.0, tuple(value.shape))
                    - 0.5 * ("var" not in key and "norm" not in key.lower())
                )
                for key, value in module.state_dict().items()
                if value.is_floating_point()
            }
            module.load_state_dict(values, strict=False)
            leaves.update({f"param.{k}": p for k, p in module.named_parameters()})
        for name, spec in case.inputs.items():
            array, wanted = make_input(spec, rng)
            tensor = names[name] = torch.from_numpy(array)
            if wanted:
                leaves[name] = tensor.requires_grad_()
        statements = case.call.split(";")
        out = eval(statements[0], names)
        for statement in statements[1:]:
            exec(statement.strip(), names)
    finally:
        torch.set_default_dtype(previous)
    results = {}
    total = None
    for number, value in enumerate(_flatten(out)):
        array = value.detach().numpy()
        results[f"out{number}"] = np.array(array)
        if value.requires_grad:
            weights = torch.from_numpy(np.cos(np.arange(array.size) + 1.0).reshape(array.shape))
            part = (value * weights).sum()
            total = part if total is None else total + part
    if total is not None:
        total.backward()
    for name, leaf in leaves.items():
        if leaf.grad is not None:
            results[f"grad.{name}"] = np.array(leaf.grad.detach().numpy())
    if module is not None:
        for name, buffer in module.named_buffers():
            results[f"buffer.{name}"] = np.array(buffer.numpy())
    return results


def _flatten(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [item for part in value for item in _flatten(part)]
    return [] if value is None else [value]

"""Record PyTorch's results, gradients and result types for the samples of ``tests/generators.py``.

python tests/golden/record_ops.py        (needs torch)
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "ops")]

from generators import CASES, NO_GRADIENT_IN_PYTORCH, SAMPLES, case_id  # noqa: E402
from type_cases import type_answers  # noqa: E402

warnings.simplefilter("ignore")
torch.set_num_threads(1)
arrays = {}
for sample, case in CASES:
    inputs = [torch.from_numpy(x).requires_grad_() for x in sample.arrays(case, np.float32)]
    out = sample.run(torch, *inputs)
    weights = torch.arange(1.0, out.numel() + 1).reshape(out.shape).to(out.dtype) / max(
        out.numel(), 1
    )
    name = case_id((sample, case))
    if name in NO_GRADIENT_IN_PYTORCH:
        continue
    (out * weights).sum().backward()
    grads = [torch.zeros_like(x) if x.grad is None else x.grad for x in inputs]
    flat = torch.cat([out.detach().float().reshape(-1), *[g.reshape(-1) for g in grads]])
    arrays[name] = flat.numpy()
# One array for all: an archive member per case would be larger than its numbers.
order = sorted(arrays)
np.savez_compressed(
    HERE / "ops.npz",
    names=np.array(order),
    lengths=np.array([arrays[name].size for name in order]),
    values=np.concatenate([arrays[name] for name in order]),
)
text = json.dumps(type_answers(torch), separators=(",", ":")).replace('],"', '],\n"')
(HERE / "ops_types.json").write_text(text + "\n")
print(
    len(SAMPLES),
    "ops,",
    len(order),
    "cases,",
    (HERE / "ops.npz").stat().st_size,
    len(text),
    "bytes",
)

"""Record a small checkpoint written by PyTorch, for tests/serialization.

Run with a PyTorch at hand:  python tests/golden/record_checkpoint.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

CHECKPOINT = Path(__file__).with_name("pytorch_checkpoint.pt")


def contents(t: Any) -> dict[str, Any]:
    """The same structure on either library."""
    base = t.arange(12).to(t.float32).reshape(3, 4)
    weight = t.nn.Parameter(t.arange(6).to(t.float32).reshape(2, 3) / 2)
    optimizer = t.optim.Adam([weight], lr=0.1)
    weight.grad = t.ones(2, 3)
    optimizer.step()
    return {
        "base": base,
        "column": base[:, 1],
        "turned": base.t(),
        "half": t.arange(4).to(t.float16),
        "bfloat16": t.arange(4).to(t.bfloat16),
        "int": t.tensor([1, -2, 3]),
        "bool": t.tensor([True, False]),
        "weight": weight,
        "optimizer": optimizer.state_dict(),
        "model": t.nn.Linear(2, 2).state_dict(),
        "epoch": 3,
        "name": "run",
        "sizes": (1, 2.5, None, [True, b"raw"]),
        "rng": t.get_rng_state(),
    }


if __name__ == "__main__":
    import torch

    torch.manual_seed(0)
    torch.save(contents(torch), CHECKPOINT)
    print(f"{CHECKPOINT}: {CHECKPOINT.stat().st_size} bytes, torch {torch.__version__}")

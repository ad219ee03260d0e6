"""Worker: all-reduce of PyTorch over gloo, between processes. `python gloo.py RANK WORLD
STORE_FILE`.

Every rank is asked at the same time by whoever measures.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from protocol import channel, serve, timed  # type: ignore[import-not-found]


def main() -> None:
    """Join the world and serve."""
    answers = channel()
    torch: Any = importlib.import_module("torch")
    dist: Any = importlib.import_module("torch.distributed")

    torch.set_num_threads(1)
    rank, world = int(sys.argv[1]), int(sys.argv[2])
    dist.init_process_group(
        "gloo", init_method=f"file://{sys.argv[3]}", rank=rank, world_size=world
    )

    def allreduce(size: int, number: int) -> float:
        data = torch.zeros(size // 4)
        dist.barrier()
        dist.all_reduce(data)
        return timed(lambda: dist.all_reduce(data), number)

    serve({"allreduce": allreduce, "about": lambda: {"torch": torch.__version__}}, answers)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

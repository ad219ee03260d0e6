"""Record PyTorch's answers to the cases of ``tests/nn/cases.py``.

Run with an interpreter that has torch, from the project's root::

    python tests/golden/record_nn.py
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from nn import cases, seeded  # noqa: E402


def main() -> None:
    warnings.simplefilter("ignore")
    for topic, table in (("functions", cases.FUNCTIONS), ("modules", cases.MODULES)):
        answers = {}
        for case in table:
            for key, array in cases.evaluate(case, torch).items():
                answers[f"{case.name}/{key}"] = array
        np.savez_compressed(HERE / f"nn_{topic}.npz", **answers)
    np.savez_compressed(HERE / "nn_seeded.npz", **seeded.draw_all(torch))
    texts = {
        expression: repr(eval(expression, {"nn": torch.nn, "torch": torch}))
        for expression in seeded.REPRS
    }
    keys = {
        expression: list(eval(expression, {"nn": torch.nn, "torch": torch}).state_dict())
        for expression in seeded.REPRS
    }
    errors = {line: seeded.message(line, torch) for line in seeded.ERRORS}
    payload = {"repr": texts, "keys": keys, "errors": errors, "torch": torch.__version__}
    (HERE / "nn_texts.json").write_text(json.dumps(payload, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()

"""Record PyTorch's answers to the cases of ``tests/nn/rnn_cases.py``.

Run with an interpreter that has torch, from the project's root::

    python tests/golden/record_rnn.py
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

from nn import rnn_cases as cases  # noqa: E402


def main() -> None:
    warnings.simplefilter("ignore")
    single, double = {}, {}
    for case in cases.CASES:
        found = cases.evaluate(case, torch, "float32", gradients=False)
        # One array per case: a file of many small ones is mostly names.
        single[case.name] = np.concatenate([array.ravel() for array in found.values()])
    for case in cases.FULL:
        found = cases.evaluate(case, torch, "float64", gradients=True)
        double[case.name] = np.concatenate([array.ravel() for array in found.values()])
    np.savez_compressed(HERE / "rnn_float32.npz", **single)
    np.savez_compressed(HERE / "rnn_float64.npz", **double)
    names = {"nn": torch.nn}
    payload = {
        "torch": torch.__version__,
        "repr": {each: repr(eval(each, names)) for each in cases.REPRS},
        "keys": {each: list(eval(each, names).state_dict()) for each in cases.REPRS},
        "errors": {each: cases.message(each, torch) for each in cases.ERRORS},
    }
    (HERE / "rnn_texts.json").write_text(json.dumps(payload, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()

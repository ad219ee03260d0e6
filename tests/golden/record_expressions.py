"""Record what PyTorch answers to ``tests/ops/expressions``; needs torch.

python tests/golden/record_expressions.py
"""

import json
import sys
from pathlib import Path

import torch

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "ops")]

from expressions import NAMES, evaluate  # noqa: E402

torch.set_num_threads(1)
answers: dict[str, dict] = {}
for table, expression in NAMES:
    answers.setdefault(table, {})[expression] = evaluate(table, expression, torch)
text = json.dumps(answers, indent=0, separators=(",", ":")).replace("\n", "")
text = text.replace('},"', '},\n"').replace('],"', '],\n"')
(HERE / "expressions.json").write_text(text + "\n")
print(f"{len(NAMES)} expressions, {len(text)} bytes, torch {torch.__version__}")

"""Record what PyTorch answers to ``tests/autograd/scenarios``; needs torch.

python tests/golden/record_autograd.py
"""

import json
import sys
import warnings
from pathlib import Path

import torch

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "autograd")]

from answers import answer  # noqa: E402
from scenarios import SCENARIOS  # noqa: E402

warnings.simplefilter("ignore")
torch.set_num_threads(1)
answers = {name: answer(function, torch) for name, function in SCENARIOS.items()}
text = json.dumps(answers, indent=0).replace("\n", "").replace('}, "', '},\n"')
(HERE / "autograd.json").write_text(text + "\n")
print(f"{len(answers)} scenarios, {len(text)} bytes, torch {torch.__version__}")

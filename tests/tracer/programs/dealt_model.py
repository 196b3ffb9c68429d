# SPDX-License-Identifier: Apache-2.0
"""What `cufit fit --train full --gpus N --strategy HOW` builds, of a small model: dealt_model.py
STRATEGY DEGREE. Its class stands in the place of one of transformers."""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
HOW, DEGREE = sys.argv[1], int(sys.argv[2])
sys.path[:0] = [
    os.path.join(HERE, "transformers_stub"),
    os.path.join(HERE, "..", "..", "..", "python"),
]
SPEC = {
    "library": "transformers",
    "architecture": "SmallForCausalLM",
    "config": os.path.join(HERE, "transformers_stub", "config.json"),
    "dtype": "fp32",
    "autocast": "bf16",
    "train": "full",
    "rank": 0,
    "seq": 16,
    "res": 0,
    "optimizer": "adamw",
    "checkpointing": False,
    "assumed": [],
    "strategy": HOW,
    "strategy_asked": HOW,
    "degree": DEGREE,
    "reshard": True,
}
os.environ.update(CUFIT_FIT_MODEL=json.dumps(SPEC), CUFIT_FIT_BATCH="2")

from cufit_model.main import entry  # noqa: E402

entry(True)()

# SPDX-License-Identifier: Apache-2.0
"""Sentences of any length, validated behind the epoch; more draws than are made one by one.

`hurried`: the clocks that Python reads run a thousand times faster, as they do for a program on a
machine that is busy with others."""

import sys
import time

if sys.argv[1:] == ["hurried"]:

    def hurry(real):
        since = real()
        return lambda: since + 1000 * (real() - since)

    for name in ("monotonic", "perf_counter", "process_time", "time"):
        setattr(time, name, hurry(getattr(time, name)))

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.utils.rnn import pad_sequence  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

WORDS = 8209


def together(sentences):
    return pad_sequence(sentences, batch_first=True)


torch.manual_seed(3)
sizes = [5 + 7 * i % 97 for i in range(4000)]
train = DataLoader([torch.ones(n, dtype=torch.int64) for n in sizes], 8, True, collate_fn=together)
check = DataLoader([torch.ones(n, dtype=torch.int64) for n in sizes[:64]], 32, collate_fn=together)
model = nn.Sequential(nn.Embedding(WORDS, 2048), nn.Linear(2048, WORDS)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    for words in train:
        words = words.cuda()
        loss = nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        kept = [model(words.cuda()).argmax(-1) for words in check]

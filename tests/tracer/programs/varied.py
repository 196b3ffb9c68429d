# SPDX-License-Identifier: Apache-2.0
"""Batches of varying size: `objects` of the program's own (graphs), those of a `sampler` of its
own, `packed` sequences of any length, and those that the loop itself has `fed`."""

import queue
import sys
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, IterableDataset


@dataclass
class Graphs:
    nodes: torch.Tensor
    edges: torch.Tensor

    def cuda(self):
        return Graphs(self.nodes.cuda(), self.edges.cuda())


class Messages(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, graphs):
        values = self.inner(graphs.nodes)
        return torch.zeros_like(values).index_add(0, graphs.edges[1], values[graphs.edges[0]])


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.outer, self.inner = nn.Linear(8, 8), nn.GRU(8, 16)

    def forward(self, batch):
        values, lengths = batch
        packed = pack_padded_sequence(self.outer(values), lengths)
        return pad_packed_sequence(self.inner(packed)[0])[0]


class ByLength:
    def __iter__(self):
        at = 0
        while at + 12 < len(sizes):
            count = 3 + at % 5
            yield list(range(at, at + count))
            at += count


class Fed(IterableDataset):
    def __iter__(self):
        while not fed.empty():
            yield fed.get()
        print("would wait")


def feeding(loader):
    batches = iter(loader)
    for size in sizes:
        fed.put((torch.ones(size, 8), size))
        yield next(batches)


def graphs(count):
    return torch.ones(count, 8), torch.arange(2 * 3 * count).reshape(2, -1) % count


def together(items):
    if what == "objects":
        return Graphs(torch.cat([n for n, _ in items]), torch.cat([e for _, e in items], 1))
    rows = sorted(items, key=len, reverse=True)
    lengths = torch.tensor([len(row) for row in rows])
    return pad_sequence(rows), lengths


torch.manual_seed(3)
what = sys.argv[1]
sizes = [4 + 11 * i % 31 for i in range(240)]
items = [graphs(n) if what == "objects" else torch.ones(n, 8) for n in sizes]
if what == "sampler":
    loader = DataLoader(items, batch_sampler=ByLength(), collate_fn=together)
elif what == "fed":
    fed = queue.Queue()
    loader = feeding(DataLoader(Fed(), batch_size=None))
else:
    loader = DataLoader(items, 6, shuffle=True, collate_fn=together)
model = (
    Messages() if what == "objects" else Words() if what == "packed" else nn.Linear(8, 8)
).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in loader:
    if what == "objects":
        out = model(batch.cuda())
    elif what == "packed":
        out = model((batch[0].cuda(), batch[1]))
    else:
        out = model(batch[0].cuda())
    optimizer.zero_grad()
    out.sum().backward()
    optimizer.step()

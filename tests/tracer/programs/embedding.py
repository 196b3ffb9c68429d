# SPDX-License-Identifier: Apache-2.0
"""Tables with dense and sparse gradients, bags, norms over many short rows, tied weights."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(5000, 64)
        self.bag = nn.EmbeddingBag(1000, 64, mode="mean")
        self.norm = nn.LayerNorm(64)
        self.head = nn.Linear(64, 5000, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens, bags):
        x = self.norm(self.words(tokens)) + self.bag(bags).unsqueeze(1)
        return self.head(x)


model = Model().cuda()
lonely = nn.Embedding(3000, 32, sparse=True).cuda()
optimizers = [torch.optim.AdamW(model.parameters()), torch.optim.SparseAdam(lonely.parameters())]
wide = nn.LayerNorm(96).cuda()
optimizers[0].add_param_group({"params": wide.parameters()})
for _ in range(5):
    tokens = torch.randint(0, 3000, (4, 32)).cuda()
    out = model(tokens, torch.randint(0, 1000, (4, 6), device="cuda"))
    loss = nn.functional.cross_entropy(out.flatten(0, 1), tokens.flatten())
    loss = loss + lonely(tokens).sum() + wide(torch.randn(70000, 96, device="cuda")).mean()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()

# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers with dropout and packed sequences, single cells, and CTC."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

lstm = nn.LSTM(32, 64, 2, batch_first=True, bidirectional=True, dropout=0.2).cuda()
gru = nn.GRU(128, 64, 1).cuda()
cell = nn.GRUCell(64, 64).cuda()
head = nn.Linear(64, 20).cuda()
modules = nn.ModuleList([lstm, gru, cell, head])
optimizer = torch.optim.Adam(modules.parameters())
lengths = torch.tensor([20, 17, 12, 9])
for step in range(3):
    x = torch.randn(4, 20, 32).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=step == 2):
        packed = pack_padded_sequence(x, lengths, batch_first=True)
        out, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True)
        out = gru(out.transpose(0, 1).contiguous())[0]
        hidden = cell(out[-1])
        scores = head(out).log_softmax(-1)
    loss = nn.functional.ctc_loss(
        scores.float(), torch.randint(1, 20, (4, 5)).cuda(), lengths, torch.full((4,), 5)
    )
    (loss + hidden.float().mean()).backward()
    optimizer.step()
    optimizer.zero_grad()

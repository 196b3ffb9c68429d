# SPDX-License-Identifier: Apache-2.0
"""Older ways to say `cuda`, distributions, transforms, values that are read."""

import torch
from torch import nn

x = torch.cuda.FloatTensor(16, 32).fill_(1)
whole = torch.ones(16, 32).type("torch.cuda.LongTensor")
print(
    isinstance(x, torch.cuda.FloatTensor),
    isinstance(x, torch.cuda.HalfTensor),
    whole.dtype,
    whole.is_cuda,
)
model = nn.Sequential(
    nn.Conv1d(1, 8, 3), nn.BatchNorm1d(8), nn.Flatten(), nn.Linear(8 * 30, 4)
).cuda()


class Doubled(torch.autograd.Function):
    """Makes a tensor in the backward pass, which has a thread of its own."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * torch.tensor(2.0, device=gradient.device)


optimizer = torch.optim.Adam(model.parameters())
normal = torch.distributions.Normal(torch.zeros(16, device="cuda"), torch.ones(16, device="cuda"))
for _ in range(3):
    out = model(x.unsqueeze(1))
    wave = torch.fft.irfft(torch.fft.rfft(x, dim=1), dim=1)
    loss = Doubled.apply(out.mean()) + normal.log_prob(normal.rsample()).mean() + wave.mean()
    if loss > 100:
        print("never")
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(
        float(loss),
        out.tolist()[0][:2],
        "%.2f" % loss,
        torch.tensor([loss, loss]).shape,
        torch.equal(x, whole),
    )
with torch.inference_mode():
    print(model.eval()(x.unsqueeze(1)).cpu().numpy().sum())

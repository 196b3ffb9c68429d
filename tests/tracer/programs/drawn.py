# SPDX-License-Identifier: Apache-2.0
"""Pictures of a size that is drawn anew every few steps, or of one size, of which one is shown now
and then."""

import argparse
import random

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--every", type=int, default=5)
parser.add_argument("--shown", action="store_true")
args = parser.parse_args()
random.seed(1)
model = nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
size = 16
for step in range(200):
    if args.shown and step % args.every == args.every - 1:
        shade = random.choice([0, 128, 255])
        print("one of shade", shade)
    if not args.shown and step % args.every == 0:
        size = random.choice([16, 24, 40])
    loss = model(torch.ones(2, 3, size, size).cuda()).sum()
    if loss > 100:
        print("never")
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()

# SPDX-License-Identifier: Apache-2.0
"""Muon by hand (Newton-Schulz on momentum, AdamW for the rest) on a timm ViT with registers."""
import argparse
import os

import timm
import torch
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"


def newton_schulz(G, steps=5, eps=1e-7):
    a, b, c = 3.4445, -4.7750, 2.0315
    X = G.bfloat16()
    X = X / (X.norm() + eps)
    if G.size(0) > G.size(1):
        X = X.T
    for _ in range(steps):
        A = X @ X.T
        X = a * X + (b * A + c * A @ A) @ X
    return (X.T if G.size(0) > G.size(1) else X).to(G.dtype)


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.95):
        super().__init__(params, dict(lr=lr, momentum=momentum))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "buffer" not in state:
                    state["buffer"] = torch.zeros_like(p.grad)
                state["buffer"].mul_(group["momentum"]).add_(p.grad)
                update = newton_schulz(p.grad.add(state["buffer"], alpha=group["momentum"]))
                p.mul_(1 - group["lr"] * 0.01).add_(update, alpha=-group["lr"] * max(1, p.size(0) / p.size(1)) ** 0.5)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=72)
    args = parser.parse_args()
    torch.manual_seed(0)
    size = 64 if SMALL else 240
    model = timm.create_model("vit_pwee_patch16_reg1_gap_256" if SMALL else "vit_betwixt_patch16_reg4_gap_256", img_size=size, num_classes=400, drop_path_rate=0.1).to(device)
    matrices = [p for n, p in model.blocks.named_parameters() if p.ndim == 2]
    chosen = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if id(p) not in chosen]
    optimizers = [Muon(matrices), torch.optim.AdamW(rest, lr=1e-3, weight_decay=0.05)]
    for step in range(5):
        x, y = torch.randn(args.batch_size, 3, size, size, device=device), torch.randint(0, 400, (args.batch_size,), device=device)
        lam = 0.3
        order = torch.randperm(args.batch_size, device=device)
        x = lam * x + (1 - lam) * x[order]
        with torch.autocast(device, torch.bfloat16):
            out = model(x)
            loss = lam * F.cross_entropy(out, y) + (1 - lam) * F.cross_entropy(out, y[order])
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        for optimizer in optimizers:
            optimizer.zero_grad()
        print(step, loss.item())


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])

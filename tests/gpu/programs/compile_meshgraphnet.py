"""MeshGraphNet for heat flow on an irregular triangle mesh. fp32 with TF32 matmuls, compiled, noise in training, rollout in validation."""
import argparse

import numpy as np
import torch
import torch.nn as nn
from scipy.spatial import Delaunay
from torch.utils.data import DataLoader, TensorDataset


def make_mesh(n, seed=0):
    rng = np.random.default_rng(seed)
    pts = rng.random((n, 2))
    tri = Delaunay(pts).simplices
    e = np.concatenate([tri[:, [0, 1]], tri[:, [1, 2]], tri[:, [2, 0]]])
    e = np.unique(np.sort(e, 1), axis=0)
    e = np.concatenate([e, e[:, ::-1]])
    return torch.tensor(pts, dtype=torch.float32), torch.tensor(e.T.copy())


def simulate(pts, edges, runs, steps, seed):
    """Explicit diffusion with advection by a fixed wind on the graph; returns runs x (steps + 1) x nodes."""
    g = torch.Generator().manual_seed(seed)
    src, dst = edges
    n = len(pts)
    deg = torch.zeros(n).index_add_(0, dst, torch.ones(len(dst)))
    wind = ((pts[dst] - pts[src]) * torch.tensor([1.0, 0.4])).sum(1) * 10
    centre = torch.rand(runs, 3, 2, generator=g)
    u = torch.exp(-((pts[None, None] - centre[:, :, None]) ** 2).sum(-1) / 0.01).sum(1)
    out = [u]
    for _ in range(steps):
        flow = (u[:, src] - u[:, dst]) * (1 + wind).clamp(min=0)
        u = u + 0.3 * torch.zeros_like(u).index_add_(1, dst, flow) / deg
        out.append(u)
    return torch.stack(out, 1)


def mlp(i, h, o, norm=True):
    layers = [nn.Linear(i, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, o)]
    return nn.Sequential(*layers, nn.LayerNorm(o)) if norm else nn.Sequential(*layers)


class Process(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.edge, self.node = mlp(3 * d, d, d), mlp(2 * d, d, d)

    def forward(self, v, e, src, dst):
        e = e + self.edge(torch.cat([e, v[:, src], v[:, dst]], -1))
        agg = torch.zeros_like(v).index_add(1, dst, e)
        return v + self.node(torch.cat([v, agg], -1)), e


class MeshGraphNet(nn.Module):
    def __init__(self, d, rounds, pts, edges):
        super().__init__()
        self.register_buffer("src", edges[0])
        self.register_buffer("dst", edges[1])
        rel = pts[edges[1]] - pts[edges[0]]
        self.register_buffer("edge_attr", torch.cat([rel, rel.norm(dim=1, keepdim=True)], 1) * 20)
        boundary = ((pts < 0.02) | (pts > 0.98)).any(1).float()
        self.register_buffer("node_attr", torch.cat([pts, boundary[:, None]], 1))
        self.enc_v, self.enc_e = mlp(4, d, d), mlp(3, d, d)
        self.rounds = nn.ModuleList([Process(d) for _ in range(rounds)])
        self.dec = mlp(d, d, 1, norm=False)

    def forward(self, u):
        b = u.shape[0]
        v = self.enc_v(torch.cat([u[..., None], self.node_attr.expand(b, -1, -1)], -1))
        e = self.enc_e(self.edge_attr).expand(b, -1, -1)
        for r in self.rounds:
            v, e = r(v, e, self.src, self.dst)
        return self.dec(v).squeeze(-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--nodes", type=int, default=5000)
    ap.add_argument("--batch-size", type=int, default=8)
    ap.add_argument("--width", type=int, default=128)
    ap.add_argument("--rounds", type=int, default=6)
    ap.add_argument("--runs", type=int, default=24)
    ap.add_argument("--sim-steps", type=int, default=40)
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--no-compile", action="store_true")
    a = ap.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    pts, edges = make_mesh(a.nodes)
    traj = simulate(pts, edges, a.runs, a.sim_steps, 1)
    held = simulate(pts, edges, 4, a.sim_steps, 2).to(device)
    delta = traj[:, 1:] - traj[:, :-1]
    scale = delta.std().item()
    pairs = TensorDataset(traj[:, :-1].reshape(-1, a.nodes), delta.reshape(-1, a.nodes))
    loader = DataLoader(pairs, batch_size=a.batch_size, shuffle=True, drop_last=True)
    model = MeshGraphNet(a.width, a.rounds, pts, edges).to(device)
    print(f"{edges.shape[1]} edges, {sum(p.numel() for p in model.parameters())} parameters")
    run = model if a.no_compile else torch.compile(model, dynamic=False)
    opt = torch.optim.Adam(model.parameters(), lr=5e-4)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.5)
    for epoch in range(a.epochs):
        model.train()
        total = 0.0
        for u, d in loader:
            u, d = u.to(device), d.to(device)
            noise = 0.003 * torch.randn_like(u)
            pred = run(u + noise)
            loss = (pred - (d - noise) / scale).pow(2).mean()
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.item()
        sched.step()
        model.eval()
        with torch.no_grad():
            u = held[:, 0]
            errors = []
            for t in range(1, held.shape[1]):
                u = u + run(u) * scale
                errors.append((u - held[:, t]).pow(2).mean().sqrt().item())
        print(f"epoch {epoch} loss {total / len(loader):.4f} rollout rmse {errors[0]:.5f} (1) {errors[-1]:.5f} ({len(errors)})", flush=True)

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()

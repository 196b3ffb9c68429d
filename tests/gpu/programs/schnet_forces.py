"""SchNet for molecular energies and forces. Forces are the gradient of the energy, so training differentiates twice."""
import argparse
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Conformers(Dataset):
    """Random clusters of atoms under a Morse-like pair potential; energy and forces computed from it."""

    def __init__(self, n, max_atoms, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            k = int(torch.randint(max_atoms // 2, max_atoms + 1, (1,), generator=g))
            z = torch.randint(1, 10, (k,), generator=g)
            side = math.ceil(k ** (1 / 3))
            grid = torch.cartesian_prod(*[torch.arange(side).float()] * 3)[:k] * 1.4
            pos = grid + 0.15 * torch.randn(k, 3, generator=g)
            self.items.append((z, pos, *self.potential(z, pos)))

    @staticmethod
    def potential(z, pos):
        d = pos[:, None] - pos[None]
        r = (d.pow(2).sum(-1) + torch.eye(len(z)) * 1e6).sqrt()
        eps = 0.05 * (z[:, None] * z[None]).float().sqrt()
        x = torch.exp(-(r - 1.5))
        energy = 0.5 * (eps * (x * x - 2 * x)).sum()
        dedr = eps * (-2 * x * x + 2 * x)
        force = -(dedr[..., None] * d / r[..., None]).sum(1)
        return energy, force

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    z = torch.cat([b[0] for b in batch])
    pos = torch.cat([b[1] for b in batch])
    energy = torch.stack([b[2] for b in batch])
    force = torch.cat([b[3] for b in batch])
    sizes = torch.tensor([len(b[0]) for b in batch])
    mol = torch.repeat_interleave(torch.arange(len(batch)), sizes)
    src, dst, off = [], [], 0
    for k in sizes.tolist():
        pair = torch.cartesian_prod(torch.arange(k), torch.arange(k))
        pair = pair[pair[:, 0] != pair[:, 1]] + off
        src.append(pair[:, 0])
        dst.append(pair[:, 1])
        off += k
    return z, pos, mol, torch.cat(src), torch.cat(dst), energy, force


def ssp(x):
    return nn.functional.softplus(x) - math.log(2)


class Interaction(nn.Module):
    def __init__(self, d, rbf, cutoff):
        super().__init__()
        self.f1, self.f2 = nn.Linear(rbf, d), nn.Linear(d, d)
        self.inp = nn.Linear(d, d, bias=False)
        self.o1, self.o2 = nn.Linear(d, d), nn.Linear(d, d)
        self.cutoff = cutoff

    def forward(self, h, r, basis, src, dst):
        w = self.f2(ssp(self.f1(basis))) * (0.5 * (torch.cos(math.pi * r / self.cutoff) + 1))[:, None]
        message = self.inp(h)[src] * w
        agg = torch.zeros_like(h).index_add(0, dst, message)
        return h + self.o2(ssp(self.o1(agg)))


class SchNet(nn.Module):
    def __init__(self, d, layers, rbf=64, cutoff=6.0):
        super().__init__()
        self.embed = nn.Embedding(20, d)
        self.blocks = nn.ModuleList([Interaction(d, rbf, cutoff) for _ in range(layers)])
        self.h1, self.h2 = nn.Linear(d, d // 2), nn.Linear(d // 2, 1)
        self.register_buffer("centres", torch.linspace(0, cutoff, rbf))
        self.gamma, self.cutoff = (rbf / cutoff) ** 2, cutoff

    def forward(self, z, pos, mol, src, dst, n):
        r = (pos[src] - pos[dst]).pow(2).sum(-1).add(1e-9).sqrt()
        near = (r < self.cutoff).nonzero().squeeze(1)
        src, dst, r = src[near], dst[near], r[near]
        basis = torch.exp(-self.gamma * (r[:, None] - self.centres) ** 2)
        h = self.embed(z)
        for blk in self.blocks:
            h = blk(h, r, basis, src, dst)
        atom = self.h2(ssp(self.h1(h))).squeeze(-1)
        return torch.zeros(n, device=pos.device).index_add(0, mol, atom)


def energy_and_forces(model, batch, device, training):
    z, pos, mol, src, dst, energy, force = [t.to(device) for t in batch]
    pos.requires_grad_(True)
    pred = model(z, pos, mol, src, dst, len(energy))
    grad = torch.autograd.grad(pred.sum(), pos, create_graph=training)[0]
    return pred, -grad, energy, force


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=96)
    p.add_argument("--width", type=int, default=192)
    p.add_argument("--layers", type=int, default=5)
    p.add_argument("--atoms", type=int, default=24)
    p.add_argument("--molecules", type=int, default=4800)
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--rho", type=float, default=0.95)
    a = p.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    train = DataLoader(Conformers(a.molecules, a.atoms, 1), a.batch_size, shuffle=True, collate_fn=collate, num_workers=3)
    val = DataLoader(Conformers(a.molecules // 10, a.atoms, 2), a.batch_size, collate_fn=collate)
    model = SchNet(a.width, a.layers).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=1e-5, amsgrad=True)
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.7, patience=1)
    for epoch in range(a.epochs):
        model.train()
        for batch in train:
            e, f, e0, f0 = energy_and_forces(model, batch, device, True)
            loss = (1 - a.rho) * (e - e0).pow(2).mean() + a.rho * (f - f0).pow(2).mean()
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            opt.step()
        model.eval()
        err_e, err_f, mols, atoms = 0.0, 0.0, 0, 0
        for batch in val:
            e, f, e0, f0 = energy_and_forces(model, batch, device, False)
            err_e += (e - e0).detach().abs().sum().item()
            err_f += (f - f0).abs().sum().item()
            mols += len(e0)
            atoms += f0.numel()
        sched.step(err_f / atoms)
        print(f"epoch {epoch} loss {loss.item():.4f} val MAE energy {err_e / mols:.4f} force {err_f / atoms:.4f}", flush=True)


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())

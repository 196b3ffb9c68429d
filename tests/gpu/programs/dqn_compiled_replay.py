# SPDX-License-Identifier: Apache-2.0
"""Dueling double DQN from frames: replay buffer on the device, compiled Q network in the update, evaluation episodes every N updates."""
import argparse
import os
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"


@dataclass
class Args:
    batch_size: int = 2048
    num_envs: int = 32
    buffer: int = 20_000
    steps: int = 640
    learning_starts: int = 160
    train_every: int = 8
    eval_every: int = 20
    gamma: float = 0.99
    tau: float = 0.01
    actions: int = 6


class Envs:
    """A vectorised game: a dot has to be followed over the screen."""

    def __init__(self, n, device):
        self.n, self.device = n, device
        self.reset()

    def reset(self):
        self.target = torch.randint(0, 84, (self.n, 2), device=self.device)
        self.me = torch.randint(0, 84, (self.n, 2), device=self.device)
        self.frames = torch.zeros(self.n, 4, 84, 84, dtype=torch.uint8, device=self.device)
        return self.render()

    def render(self):
        frame = torch.zeros(self.n, 84, 84, dtype=torch.uint8, device=self.device)
        i = torch.arange(self.n, device=self.device)
        frame[i, self.target[:, 0], self.target[:, 1]] = 255
        frame[i, self.me[:, 0], self.me[:, 1]] = 128
        self.frames = torch.cat([self.frames[:, 1:], frame[:, None]], 1)
        return self.frames

    def step(self, action):
        moves = torch.tensor([[0, 0], [0, 0], [3, 0], [-3, 0], [0, 3], [0, -3]], device=self.device)
        before = (self.target - self.me).abs().sum(1)
        self.me = (self.me + moves[action]).clamp(0, 83)
        self.target = (self.target + torch.randint(-1, 2, self.target.shape, device=self.device)).clamp(0, 83)
        reward = (before - (self.target - self.me).abs().sum(1)).float().sign()
        return self.render(), reward, torch.rand(self.n, device=self.device) < 0.01


class Replay:
    def __init__(self, size, device):
        self.obs = torch.zeros(size, 4, 84, 84, dtype=torch.uint8, device=device)
        self.next_obs = torch.zeros_like(self.obs)
        self.act = torch.zeros(size, dtype=torch.long, device=device)
        self.rew, self.done = torch.zeros(size, device=device), torch.zeros(size, device=device)
        self.size, self.ptr, self.full = size, 0, False

    def add(self, o, a, r, n, d):
        idx = torch.arange(self.ptr, self.ptr + len(o), device=o.device) % self.size
        self.obs[idx], self.act[idx], self.rew[idx], self.next_obs[idx], self.done[idx] = o, a, r, n, d.float()
        self.full |= self.ptr + len(o) >= self.size
        self.ptr = (self.ptr + len(o)) % self.size

    def sample(self, n):
        idx = torch.randint(0, self.size if self.full else self.ptr, (n,), device=self.obs.device)
        return self.obs[idx], self.act[idx], self.rew[idx], self.next_obs[idx], self.done[idx]


class QNetwork(nn.Module):
    def __init__(self, actions):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(4, 64, 8, 4), nn.ReLU(), nn.Conv2d(64, 128, 4, 2), nn.ReLU(), nn.Conv2d(128, 128, 3), nn.ReLU(), nn.Flatten())
        self.value = nn.Sequential(nn.Linear(128 * 49, 512), nn.ReLU(), nn.Linear(512, 1))
        self.adv = nn.Sequential(nn.Linear(128 * 49, 512), nn.ReLU(), nn.Linear(512, actions))

    def forward(self, x):
        h = self.trunk(x.float() / 255.0)
        a = self.adv(h)
        return self.value(h) + a - a.mean(1, keepdim=True)


def evaluate(q, device, horizon=30):
    envs = Envs(64, device)
    obs, total = envs.reset(), 0.0
    with torch.no_grad():
        for _ in range(horizon):
            obs, reward, _ = envs.step(q(obs).argmax(1))
            total += reward.mean().item()
    return total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=Args.batch_size)
    p.add_argument("--no-compile", action="store_true")
    cli = p.parse_args()
    args = Args(batch_size=cli.batch_size)
    if SMALL:
        args = Args(batch_size=16, num_envs=4, buffer=200, steps=40, learning_starts=20, eval_every=2)
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    q, target = QNetwork(args.actions).to(device), QNetwork(args.actions).to(device)
    target.load_state_dict(q.state_dict())
    q_train = q if cli.no_compile else torch.compile(q)
    optimizer = torch.optim.RMSprop(q.parameters(), lr=2.5e-4, alpha=0.95, eps=0.01, centered=True)
    rb = Replay(args.buffer, device)
    envs = Envs(args.num_envs, device)
    obs = envs.reset()
    updates = 0
    for step in range(args.steps):
        eps = max(0.05, 1 - step / (0.5 * args.steps))
        with torch.no_grad():
            greedy = q(obs).argmax(1)
        action = torch.where(torch.rand(args.num_envs, device=device) < eps, torch.randint(0, args.actions, (args.num_envs,), device=device), greedy)
        nxt, reward, done = envs.step(action)
        rb.add(obs, action, reward, nxt, done)
        obs = nxt
        if step >= args.learning_starts and step % args.train_every == 0:
            o, a, r, n, d = rb.sample(args.batch_size)
            with torch.no_grad():
                best = q(n).argmax(1, keepdim=True)
                y = r + args.gamma * (1 - d) * target(n).gather(1, best).squeeze(1)
            loss = F.smooth_l1_loss(q_train(o).gather(1, a[:, None]).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(q.parameters(), 10)
            optimizer.step()
            for t, s in zip(target.parameters(), q.parameters()):
                t.data.copy_(args.tau * s.data + (1 - args.tau) * t.data)
            updates += 1
            if updates % args.eval_every == 0:
                print(f"step {step} updates {updates} loss {loss.item():.4f} return {evaluate(q, device):.2f}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])

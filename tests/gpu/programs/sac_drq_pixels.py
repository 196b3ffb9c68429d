"""SAC from pixels with random-shift augmentation (DrQ style) on a small vectorised reaching task."""
import argparse
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--num-envs", type=int, default=16)
parser.add_argument("--capacity", type=int, default=12000)
parser.add_argument("--batch-size", type=int, default=512)
parser.add_argument("--updates", type=int, default=800)
parser.add_argument("--warmup", type=int, default=60)
parser.add_argument("--eval-every", type=int, default=200)
parser.add_argument("--lr", type=float, default=3e-4)
args = parser.parse_args()

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(3)


class ReachEnv:
    """Point mass moved by a force towards a target, rendered as a picture of 84 x 84; three frames stacked."""

    def __init__(self, n, horizon=50):
        self.n, self.horizon = n, horizon
        axis = torch.linspace(-1, 1, 84, device=device)
        self.gy, self.gx = torch.meshgrid(axis, axis, indexing="ij")
        self.reset()

    def render(self):
        def blob(p, s):
            dx = self.gx[None] - p[:, 0, None, None]
            dy = self.gy[None] - p[:, 1, None, None]
            return torch.exp(-(dx ** 2 + dy ** 2) / s)
        speed = self.vel.norm(dim=1).clamp(max=1)[:, None, None].expand(-1, 84, 84)
        frame = torch.stack([blob(self.pos, 0.01), blob(self.goal, 0.02), speed], 1)
        return (frame * 255).to(torch.uint8)

    def reset(self):
        self.pos = torch.rand(self.n, 2, device=device) * 2 - 1
        self.goal = torch.rand(self.n, 2, device=device) * 2 - 1
        self.vel = torch.zeros(self.n, 2, device=device)
        self.t = 0
        self.frames = [self.render()] * 3
        return torch.cat(self.frames, 1)

    def step(self, action):
        self.vel = 0.8 * self.vel + 0.1 * action
        self.pos = (self.pos + self.vel).clamp(-1, 1)
        self.t += 1
        reward = -(self.pos - self.goal).norm(dim=1)
        self.frames = self.frames[1:] + [self.render()]
        return torch.cat(self.frames, 1), reward, self.t >= self.horizon


class Replay:
    def __init__(self, capacity):
        self.obs = torch.empty(capacity, 9, 84, 84, dtype=torch.uint8, device=device)
        self.next_obs = torch.empty_like(self.obs)
        self.action = torch.empty(capacity, 2, device=device)
        self.reward = torch.empty(capacity, device=device)
        self.capacity, self.at, self.size = capacity, 0, 0

    def add(self, obs, action, reward, next_obs):
        for o, a, r, n in zip(obs, action, reward, next_obs):
            self.obs[self.at], self.action[self.at] = o, a
            self.reward[self.at], self.next_obs[self.at] = r, n
            self.at = (self.at + 1) % self.capacity
            self.size = min(self.size + 1, self.capacity)

    def sample(self, batch):
        idx = torch.randint(0, self.size, (batch,), device=device)
        return self.obs[idx], self.action[idx], self.reward[idx], self.next_obs[idx]


def random_shift(x, pad=4):
    n, _, h, w = x.shape
    x = F.pad(x.float(), (pad,) * 4, mode="replicate")
    size = h + 2 * pad
    base = torch.linspace(-1 + 1 / size, 1 - 1 / size, size, device=x.device)[:h]
    base = base[None].repeat(h, 1)[..., None]
    grid = torch.cat([base, base.transpose(1, 0)], 2)[None].repeat(n, 1, 1, 1)
    shift = torch.randint(0, 2 * pad + 1, (n, 1, 1, 2), device=x.device).float() * 2 / size
    return F.grid_sample(x, grid + shift, padding_mode="zeros", align_corners=False)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.Sequential(nn.Conv2d(9, 32, 3, 2), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU(),
                                   nn.Conv2d(32, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU())
        self.out = 32 * 35 * 35

    def forward(self, x):
        return self.convs(x.float() / 255 - 0.5).flatten(1)


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, o))


class Actor(nn.Module):
    def __init__(self, feat):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(feat, 50), nn.LayerNorm(50), nn.Tanh())
        self.head = mlp(50, 4)

    def forward(self, h):
        mean, log_std = self.head(self.trunk(h)).chunk(2, 1)
        log_std = log_std.clamp(-5, 2)
        dist = torch.distributions.Normal(mean, log_std.exp())
        raw = dist.rsample()
        action = raw.tanh()
        logp = (dist.log_prob(raw) - 2 * (math.log(2) - raw - F.softplus(-2 * raw))).sum(1)
        return action, logp, mean.tanh()


class Critic(nn.Module):
    def __init__(self, feat):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(feat, 50), nn.LayerNorm(50), nn.Tanh())
        self.q1, self.q2 = mlp(52, 1), mlp(52, 1)

    def forward(self, h, a):
        x = torch.cat([self.trunk(h), a], 1)
        return self.q1(x).squeeze(1), self.q2(x).squeeze(1)


encoder = Encoder().to(device)
actor, critic = Actor(encoder.out).to(device), Critic(encoder.out).to(device)
target_encoder, target_critic = copy.deepcopy(encoder), copy.deepcopy(critic)
log_alpha = torch.tensor(math.log(0.1), device=device, requires_grad=True)
opt_critic = torch.optim.Adam([*encoder.parameters(), *critic.parameters()], lr=args.lr)
opt_actor = torch.optim.Adam(actor.parameters(), lr=args.lr)
opt_alpha = torch.optim.Adam([log_alpha], lr=1e-4, betas=(0.5, 0.999))
buffer = Replay(args.capacity)


def update():
    obs, action, reward, next_obs = buffer.sample(args.batch_size)
    obs, next_obs = random_shift(obs), random_shift(next_obs)
    with torch.no_grad():
        next_action, next_logp, _ = actor(encoder(next_obs))
        q1, q2 = target_critic(target_encoder(next_obs), next_action)
        target = reward + 0.98 * (torch.min(q1, q2) - log_alpha.exp() * next_logp)
    feat = encoder(obs)
    q1, q2 = critic(feat, action)
    critic_loss = F.mse_loss(q1, target) + F.mse_loss(q2, target)
    opt_critic.zero_grad(set_to_none=True)
    critic_loss.backward()
    opt_critic.step()

    feat = feat.detach()
    new_action, logp, _ = actor(feat)
    q1, q2 = critic(feat, new_action)
    actor_loss = (log_alpha.exp().detach() * logp - torch.min(q1, q2)).mean()
    opt_actor.zero_grad(set_to_none=True)
    actor_loss.backward()
    opt_actor.step()

    alpha_loss = -(log_alpha.exp() * (logp.detach() - 2)).mean()
    opt_alpha.zero_grad()
    alpha_loss.backward()
    opt_alpha.step()
    with torch.no_grad():
        for net, tgt in ((encoder, target_encoder), (critic, target_critic)):
            for p, tp in zip(net.parameters(), tgt.parameters()):
                tp.lerp_(p, 0.01)
    return critic_loss.item(), actor_loss.item()


@torch.no_grad()
def evaluate(episodes=32):
    test = ReachEnv(episodes)
    obs, total, done = test.reset(), torch.zeros(episodes, device=device), False
    while not done:
        _, _, greedy = actor(encoder(obs))
        obs, reward, done = test.step(greedy)
        total += reward
    return total.mean().item()


env = ReachEnv(args.num_envs)
obs = env.reset()
for step in range(args.warmup + args.updates):
    with torch.no_grad():
        act = torch.rand(args.num_envs, 2, device=device) * 2 - 1 if step < args.warmup else actor(encoder(obs))[0]
    nxt, reward, done = env.step(act)
    buffer.add(obs, act, reward, nxt)
    obs = env.reset() if done else nxt
    if step >= args.warmup:
        losses = update()
        k = step - args.warmup + 1
        if k % args.eval_every == 0:
            print(f"update {k} critic {losses[0]:.3f} actor {losses[1]:.3f} return {evaluate():.2f}", flush=True)

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())

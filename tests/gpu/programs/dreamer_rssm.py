"""DreamerV2-like agent: RSSM world model on 64x64 pixels, imagination rollouts, actor-critic with a target critic."""
import argparse
import copy
import random
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Bernoulli, Independent, Normal, OneHotCategoricalStraightThrough, kl_divergence

parser = argparse.ArgumentParser()
parser.add_argument("--deter", type=int, default=600)
parser.add_argument("--stoch", type=int, default=32)
parser.add_argument("--classes", type=int, default=32)
parser.add_argument("--hidden", type=int, default=400)
parser.add_argument("--depth", type=int, default=48)
parser.add_argument("--batch_size", type=int, default=24)
parser.add_argument("--batch_length", type=int, default=50)
parser.add_argument("--horizon", type=int, default=15)
parser.add_argument("--prefill", type=int, default=1500)
parser.add_argument("--train_every", type=int, default=8)
parser.add_argument("--steps", type=int, default=240)
parser.add_argument("--eval_every", type=int, default=120)
parser.add_argument("--num_actions", type=int, default=5)
args = parser.parse_args()
random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Reacher:
    """a dot on the screen has to reach a square"""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.pos, self.goal, self.t = self.rng.integers(4, 60, 2), self.rng.integers(8, 56, 2), 0
        return self.render()

    def render(self):
        img = np.zeros((3, 64, 64), dtype=np.uint8)
        img[1, self.goal[0] - 4:self.goal[0] + 4, self.goal[1] - 4:self.goal[1] + 4] = 255
        img[0, max(0, self.pos[0] - 2):self.pos[0] + 2, max(0, self.pos[1] - 2):self.pos[1] + 2] = 255
        return img

    def step(self, a):
        self.pos = np.clip(self.pos + np.array([(0, 0), (3, 0), (-3, 0), (0, 3), (0, -3)])[a], 2, 61)
        self.t += 1
        hit = np.abs(self.pos - self.goal).max() < 5
        return self.render(), float(hit), bool(self.t >= 100)


class Replay:
    def __init__(self, capacity=20000):
        self.obs = np.zeros((capacity, 3, 64, 64), dtype=np.uint8)
        self.act, self.rew, self.first, self.cont = (np.zeros(s, dtype=np.float32) for s in ((capacity, args.num_actions), capacity, capacity, capacity))
        self.n = 0

    def add(self, obs, act, rew, first, done):
        i = self.n
        self.obs[i], self.act[i], self.rew[i], self.first[i], self.cont[i] = obs, act, rew, first, 1.0 - done
        self.n += 1

    def sample(self):
        idx = np.random.randint(0, self.n - args.batch_length, args.batch_size)[:, None] + np.arange(args.batch_length)
        to = lambda x: torch.as_tensor(x[idx], device=device)
        return to(self.obs).float() / 255 - 0.5, to(self.act), to(self.rew), to(self.first), to(self.cont)


def mlp(i, o, hidden, layers=3):
    mods = []
    for _ in range(layers):
        mods += [nn.Linear(i, hidden), nn.LayerNorm(hidden), nn.ELU()]
        i = hidden
    return nn.Sequential(*mods, nn.Linear(i, o))


class WorldModel(nn.Module):
    def __init__(self):
        super().__init__()
        d, s, h = args.depth, args.stoch * args.classes, args.hidden
        self.encoder = nn.Sequential(nn.Conv2d(3, d, 4, 2), nn.ELU(), nn.Conv2d(d, 2 * d, 4, 2), nn.ELU(), nn.Conv2d(2 * d, 4 * d, 4, 2), nn.ELU(),
                                     nn.Conv2d(4 * d, 8 * d, 4, 2), nn.ELU(), nn.Flatten())
        emb, feat = 8 * d * 4, args.deter + s
        self.inp = nn.Sequential(nn.Linear(s + args.num_actions, h), nn.ELU())
        self.cell = nn.GRUCell(h, args.deter)
        self.prior, self.post = mlp(args.deter, s, h, 1), mlp(args.deter + emb, s, h, 1)
        self.dec_in = nn.Linear(feat, 32 * d)
        self.decoder = nn.Sequential(nn.ConvTranspose2d(32 * d, 4 * d, 5, 2), nn.ELU(), nn.ConvTranspose2d(4 * d, 2 * d, 5, 2), nn.ELU(),
                                     nn.ConvTranspose2d(2 * d, d, 6, 2), nn.ELU(), nn.ConvTranspose2d(d, 3, 6, 2))
        self.reward, self.cont = mlp(feat, 1, h), mlp(feat, 1, h)
        self.feat_dim = feat

    def initial(self, b):
        return torch.zeros(b, args.deter, device=device), torch.zeros(b, args.stoch * args.classes, device=device)

    @staticmethod
    def dist(logits):
        return Independent(OneHotCategoricalStraightThrough(logits=logits.unflatten(-1, (args.stoch, args.classes))), 1)

    def img_step(self, deter, stoch, action):
        deter = self.cell(self.inp(torch.cat([stoch, action], -1)), deter)
        return deter, self.prior(deter)

    def observe(self, obs, action, first):
        b, t = obs.shape[:2]
        emb = self.encoder(obs.flatten(0, 1)).unflatten(0, (b, t))
        deter, stoch = self.initial(b)
        deters, stochs, priors, posts = [], [], [], []
        for i in range(t):
            keep = (1 - first[:, i])[:, None]
            deter, prior = self.img_step(deter * keep, stoch * keep, action[:, i] * keep)
            post = self.post(torch.cat([deter, emb[:, i]], -1))
            stoch = self.dist(post).rsample().flatten(-2)
            deters.append(deter), stochs.append(stoch), priors.append(prior), posts.append(post)
        return [torch.stack(x, 1) for x in (deters, stochs, priors, posts)]

    def loss(self, obs, action, reward, first, cont):
        deter, stoch, prior, post = self.observe(obs, action, first)
        feat = torch.cat([deter, stoch], -1)
        recon = self.decoder(self.dec_in(feat.flatten(0, 1))[:, :, None, None]).unflatten(0, obs.shape[:2])
        img = -Independent(Normal(recon, 1.0), 3).log_prob(obs).mean()
        rew = -Normal(self.reward(feat).squeeze(-1), 1.0).log_prob(reward).mean()
        con = -Bernoulli(logits=self.cont(feat).squeeze(-1)).log_prob(cont).mean()
        kl_lhs = kl_divergence(self.dist(post.detach()), self.dist(prior)).mean()
        kl_rhs = kl_divergence(self.dist(post), self.dist(prior.detach())).mean()
        kl = 0.8 * kl_lhs.clamp(min=1.0) + 0.2 * kl_rhs.clamp(min=1.0)
        return img + rew + 5 * con + 0.1 * kl, deter.detach().flatten(0, 1), stoch.detach().flatten(0, 1), {"img": img.item(), "rew": rew.item(), "kl": kl.item()}


wm = WorldModel().to(device)
actor, critic = mlp(wm.feat_dim, args.num_actions, args.hidden, 4).to(device), mlp(wm.feat_dim, 1, args.hidden, 4).to(device)
target_critic = copy.deepcopy(critic).requires_grad_(False)
wm_opt = torch.optim.AdamW(wm.parameters(), lr=3e-4, eps=1e-5, weight_decay=1e-6)
actor_opt = torch.optim.AdamW(actor.parameters(), lr=8e-5, eps=1e-5, weight_decay=1e-6)
critic_opt = torch.optim.AdamW(critic.parameters(), lr=8e-5, eps=1e-5, weight_decay=1e-6)


def train_step(replay, updates):
    loss, deter, stoch, metrics = wm.loss(*replay.sample())
    wm_opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(wm.parameters(), 100)
    wm_opt.step()

    for p in wm.parameters():
        p.requires_grad_(False)
    feats, logps, ents = [torch.cat([deter, stoch], -1)], [], []
    for _ in range(args.horizon):
        pi = OneHotCategoricalStraightThrough(logits=actor(feats[-1].detach()))
        a = pi.rsample()
        logps.append(pi.log_prob(a.detach())), ents.append(pi.entropy())
        deter, prior = wm.img_step(deter, stoch, a)
        stoch = wm.dist(prior).rsample().flatten(-2)
        feats.append(torch.cat([deter, stoch], -1))
    feats = torch.stack(feats)
    reward = wm.reward(feats).squeeze(-1)
    disc = 0.99 * torch.sigmoid(wm.cont(feats).squeeze(-1))
    value = target_critic(feats).squeeze(-1)
    returns, last = [], value[-1]
    for i in reversed(range(args.horizon)):
        last = reward[i + 1] + disc[i + 1] * (0.05 * value[i + 1] + 0.95 * last)
        returns.append(last)
    returns = torch.stack(returns[::-1])
    weights = torch.cumprod(torch.cat([torch.ones_like(disc[:1]), disc[1:-1]]), 0).detach()
    adv = (returns - value[:-1]).detach()
    objective = 0.1 * returns + 0.9 * torch.stack(logps) * adv + 3e-3 * torch.stack(ents)
    actor_loss = -(weights * objective).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    nn.utils.clip_grad_norm_(actor.parameters(), 100)
    actor_opt.step()
    critic_loss = -(weights * Normal(critic(feats[:-1].detach()).squeeze(-1), 1.0).log_prob(returns.detach())).mean()
    critic_opt.zero_grad()
    critic_loss.backward()
    nn.utils.clip_grad_norm_(critic.parameters(), 100)
    critic_opt.step()
    for p in wm.parameters():
        p.requires_grad_(True)
    if updates % 10 == 0:
        target_critic.load_state_dict(critic.state_dict())
    return {**metrics, "actor": actor_loss.item(), "critic": critic_loss.item()}


@torch.no_grad()
def policy(obs, state, action, explore=True):
    deter, stoch = state
    x = torch.as_tensor(obs, device=device).float()[None] / 255 - 0.5
    deter, _ = wm.img_step(deter, stoch, action)
    stoch = wm.dist(wm.post(torch.cat([deter, wm.encoder(x)], -1))).sample().flatten(-2)
    logits = actor(torch.cat([deter, stoch], -1))
    a = torch.distributions.Categorical(logits=logits).sample() if explore else logits.argmax(-1)
    return int(a), (deter, stoch)


def one_hot(a):
    v = np.zeros(args.num_actions, dtype=np.float32)
    v[a] = 1
    return v


env, replay = Reacher(0), Replay()
obs, done = env.reset(), False
replay.add(obs, one_hot(0), 0.0, 1.0, 0.0)
for _ in range(args.prefill):
    a = random.randrange(args.num_actions)
    obs, r, done = env.step(a)
    replay.add(obs, one_hot(a), r, 0.0, 0.0)
    if done:
        obs = env.reset()
        replay.add(obs, one_hot(0), 0.0, 1.0, 0.0)

out, updates, start = tempfile.mkdtemp(), 0, time.time()
obs = env.reset()
state, prev = wm.initial(1), torch.zeros(1, args.num_actions, device=device)
for step in range(1, args.steps + 1):
    a, state = policy(obs, state, prev)
    prev = torch.as_tensor(one_hot(a), device=device)[None]
    obs, r, done = env.step(a)
    replay.add(obs, one_hot(a), r, 0.0, 0.0)
    if done:
        obs = env.reset()
        replay.add(obs, one_hot(0), 0.0, 1.0, 0.0)
        state, prev = wm.initial(1), torch.zeros(1, args.num_actions, device=device)
    if step % args.train_every == 0:
        metrics = train_step(replay, updates)
        updates += 1
        if updates % 5 == 0:
            print(f"step {step} update {updates} " + " ".join(f"{k} {v:.3f}" for k, v in metrics.items()) + f" {time.time() - start:.1f}s")
    if step % args.eval_every == 0:
        e = Reacher(100)
        o, st, pa, total, fin = e.reset(), wm.initial(1), torch.zeros(1, args.num_actions, device=device), 0.0, False
        while not fin:
            a, st = policy(o, st, pa, explore=False)
            pa = torch.as_tensor(one_hot(a), device=device)[None]
            o, r, fin = e.step(a)
            total += r
        print(f"eval return {total:.1f}")
        torch.save({"wm": wm.state_dict(), "actor": actor.state_dict(), "critic": critic.state_dict()}, f"{out}/agent_{step}.pt")

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())

# SPDX-License-Identifier: Apache-2.0
"""PPO on synthetic pixels: a rollout under no_grad kept on the GPU, advantages, minibatch epochs. --batch-size is the number of environments."""
import argparse
import os

import torch
import torch.nn as nn
from torch.distributions import Categorical

SMALL = os.environ.get("SMALL") == "1"
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def layer_init(layer, std=2 ** 0.5, bias=0.0):
    nn.init.orthogonal_(layer.weight, std)
    nn.init.constant_(layer.bias, bias)
    return layer


class Agent(nn.Module):
    def __init__(self, actions):
        super().__init__()
        self.network = nn.Sequential(
            layer_init(nn.Conv2d(4, 64, 8, stride=4)), nn.ReLU(), layer_init(nn.Conv2d(64, 128, 4, stride=2)), nn.ReLU(),
            layer_init(nn.Conv2d(128, 128, 3)), nn.ReLU(), nn.Flatten(), layer_init(nn.Linear(128 * 7 * 7, 1024)), nn.ReLU())
        self.actor, self.critic = layer_init(nn.Linear(1024, actions), 0.01), layer_init(nn.Linear(1024, 1), 1)

    def value(self, x):
        return self.critic(self.network(x / 255.0))

    def act(self, x, action=None):
        h = self.network(x / 255.0)
        dist = Categorical(logits=self.actor(h))
        if action is None:
            action = dist.sample()
        return action, dist.log_prob(action), dist.entropy(), self.critic(h)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=96)
    parser.add_argument("--steps", type=int, default=8 if SMALL else 128)
    args = parser.parse_args()
    torch.manual_seed(0)
    envs, steps, gamma, lam = args.batch_size, args.steps, 0.99, 0.95
    agent = Agent(18).to(device)
    optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
    obs = torch.zeros(steps, envs, 4, 84, 84, device=device)
    actions, logprobs, rewards, dones, values = (torch.zeros(steps, envs, device=device) for _ in range(5))
    now = torch.randint(0, 256, (envs, 4, 84, 84)).float().to(device)
    for t in range(steps):
        obs[t] = now
        with torch.no_grad():
            action, logprob, _, value = agent.act(now)
        actions[t], logprobs[t], values[t] = action, logprob, value.flatten()
        rewards[t] = torch.randn(envs).to(device)
        dones[t] = (torch.rand(envs) < 0.01).float().to(device)
        now = torch.randint(0, 256, (envs, 4, 84, 84)).float().to(device)
    with torch.no_grad():
        following = agent.value(now).flatten()
        advantages, last = torch.zeros_like(rewards), 0
        for t in reversed(range(steps)):
            nextvalue = following if t == steps - 1 else values[t + 1]
            delta = rewards[t] + gamma * nextvalue * (1 - dones[t]) - values[t]
            advantages[t] = last = delta + gamma * lam * (1 - dones[t]) * last
        returns = advantages + values
    b_obs, b_actions, b_log, b_adv, b_ret = obs.reshape(-1, 4, 84, 84), actions.reshape(-1).long(), logprobs.reshape(-1), advantages.reshape(-1), returns.reshape(-1)
    n = envs * steps
    for epoch in range(2):
        order = torch.randperm(n, device=device)
        for start in range(0, n, n // 3 + 1):
            index = order[start:start + n // 3 + 1]
            _, newlog, entropy, newvalue = agent.act(b_obs[index], b_actions[index])
            ratio = (newlog - b_log[index]).exp()
            adv = (b_adv[index] - b_adv[index].mean()) / (b_adv[index].std() + 1e-8)
            policy = torch.max(-adv * ratio, -adv * ratio.clamp(0.9, 1.1)).mean()
            loss = policy - 0.01 * entropy.mean() + 0.5 * 0.5 * (newvalue.view(-1) - b_ret[index]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])

# SPDX-License-Identifier: Apache-2.0
"""GPT-2 small (Radford and others, 2019): 12 layers of 768, 124 million parameters, the output
layer tied to the embedding, no dropout."""

VOCABULARY, LENGTH, WIDTH, LAYERS, HEADS = 50257, 1024, 768, 12, 12


def attention(torch, q, k, v):
    fused = getattr(torch.nn.functional, "scaled_dot_product_attention", None)  # of torch 2.0
    if fused is not None:
        return fused(q, k, v, is_causal=True)
    weights = (q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5
    later = torch.ones(weights.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return weights.masked_fill(later, float("-inf")).softmax(-1) @ v


def small(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.mlp = nn.Sequential(
                nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
            )

        def forward(self, x):
            batch, length, _ = x.shape
            parts = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            mixed = attention(torch, q, k, v).transpose(1, 2).reshape(batch, length, WIDTH)
            x = x + self.out(mixed)
            return x + self.mlp(self.norm2(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, WIDTH)
            self.places = nn.Embedding(LENGTH, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.norm = nn.LayerNorm(WIDTH)
            for table in (self.tokens, self.places):
                nn.init.normal_(table.weight, std=0.02)

        def forward(self, tokens):
            places = torch.arange(tokens.shape[1], device=tokens.device)
            x = self.tokens(tokens) + self.places(places)
            for block in self.blocks:
                x = block(x)
            return nn.functional.linear(self.norm(x), self.tokens.weight)

    return Model()

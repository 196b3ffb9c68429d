# SPDX-License-Identifier: Apache-2.0
"""A UNet of SDXL's shape (Podell and others, 2023): channels 320, 640 and 1280, heads of 64, text
of 77 x 2048. Its transformers are 0, 1 and 2 blocks deep where SDXL's are 0, 2 and 10, so that it
takes a third of the memory."""

import math

CHANNELS, DEPTHS, CONTEXT, TIME, HEAD = (320, 640, 1280), (0, 1, 2), 2048, 1280, 64


def attention(torch, q, k, v):
    fused = getattr(torch.nn.functional, "scaled_dot_product_attention", None)  # of torch 2.0
    if fused is not None:
        return fused(q, k, v)
    return ((q @ k.transpose(-2, -1)) * HEAD**-0.5).softmax(-1) @ v


def UNet(torch, device, kind):
    nn, silu = torch.nn, torch.nn.functional.silu
    where = {"device": device, "dtype": kind}

    def conv(inputs, outputs, size=3, stride=1):
        return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, **where)

    class Residual(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.norm1, self.norm2 = (nn.GroupNorm(32, n, **where) for n in (inputs, outputs))
            self.conv1, self.conv2 = conv(inputs, outputs), conv(outputs, outputs)
            self.time = nn.Linear(TIME, outputs, **where)
            self.short = conv(inputs, outputs, 1) if inputs != outputs else nn.Identity()

        def forward(self, x, time):
            y = self.conv1(silu(self.norm1(x))) + self.time(silu(time))[:, :, None, None]
            return self.short(x) + self.conv2(silu(self.norm2(y)))

    class Attention(nn.Module):
        def __init__(self, width, context):
            super().__init__()
            self.q, self.out = (nn.Linear(width, width, **where) for _ in range(2))
            self.k, self.v = (nn.Linear(context, width, bias=False, **where) for _ in range(2))

        def forward(self, x, context):
            def heads(y):
                return y.view(*y.shape[:2], -1, HEAD).transpose(1, 2)

            q, k, v = heads(self.q(x)), heads(self.k(context)), heads(self.v(context))
            return self.out(attention(torch, q, k, v).transpose(1, 2).flatten(2))

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norms = nn.ModuleList(nn.LayerNorm(width, **where) for _ in range(3))
            self.own, self.cross = Attention(width, width), Attention(width, CONTEXT)
            self.up = nn.Linear(width, 8 * width, **where)
            self.down = nn.Linear(4 * width, width, **where)

        def forward(self, x, text):
            y = self.norms[0](x)
            x = x + self.own(y, y)
            x = x + self.cross(self.norms[1](x), text)
            value, gate = self.up(self.norms[2](x)).chunk(2, -1)
            return x + self.down(value * nn.functional.gelu(gate))

    class Transformer(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.norm = nn.GroupNorm(32, width, **where)
            self.into, self.out = (nn.Linear(width, width, **where) for _ in range(2))
            self.blocks = nn.ModuleList(Block(width) for _ in range(depth))

        def forward(self, x, text):
            y = self.into(self.norm(x).flatten(2).transpose(1, 2))
            for block in self.blocks:
                y = block(y, text)
            return x + self.out(y).transpose(1, 2).reshape(x.shape)

    class Layer(nn.Module):
        def __init__(self, inputs, width, depth):
            super().__init__()
            self.residual = Residual(inputs, width)
            self.transformer = Transformer(width, depth) if depth else None

        def forward(self, x, time, text):
            x = self.residual(x, time)
            return x if self.transformer is None else self.transformer(x, text)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            first, last = CHANNELS[0], CHANNELS[-1]
            self.time = nn.Sequential(
                nn.Linear(first, TIME, **where), nn.SiLU(), nn.Linear(TIME, TIME, **where)
            )
            self.begin, kept, width = conv(4, first), [first], first
            self.downs, self.ups = nn.ModuleList(), nn.ModuleList()
            for level, (channels, depth) in enumerate(zip(CHANNELS, DEPTHS)):
                for _ in range(2):
                    self.downs.append(Layer(width, channels, depth))
                    width = channels
                    kept.append(width)
                if level < len(CHANNELS) - 1:
                    self.downs.append(conv(width, width, stride=2))
                    kept.append(width)
            self.middle = Layer(last, last, DEPTHS[-1])
            self.middle_end = Residual(last, last)
            for level in reversed(range(len(CHANNELS))):
                for _ in range(3):
                    self.ups.append(Layer(width + kept.pop(), CHANNELS[level], DEPTHS[level]))
                    width = CHANNELS[level]
                if level:
                    self.ups.append(conv(width, width))
            self.norm, self.end = nn.GroupNorm(32, first, **where), conv(first, 4)

        def embed(self, times):
            half = CHANNELS[0] // 2
            steps = torch.arange(half, device=device, dtype=torch.float32)
            angles = times[:, None].float() * torch.exp(-math.log(10000) / half * steps)
            return self.time(torch.cat((angles.cos(), angles.sin()), -1).to(kind))

        def forward(self, x, times, text):
            time, x = self.embed(times), self.begin(x)
            kept = [x]
            for layer in self.downs:
                x = layer(x, time, text) if isinstance(layer, Layer) else layer(x)
                kept.append(x)
            x = self.middle_end(self.middle(x, time, text), time)
            for layer in self.ups:
                if isinstance(layer, Layer):
                    x = layer(torch.cat((x, kept.pop()), 1), time, text)
                else:
                    x = layer(nn.functional.interpolate(x, scale_factor=2.0))
            return self.end(silu(self.norm(x)))

    return Model()

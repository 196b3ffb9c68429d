#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The greatest block that PyTorch asks for while torch.backends.cudnn.benchmark tries a convolution
in fp32, one pass after another: src/fit/workspaces/cudnn_benchmark_workspace.cc.

tried_blocks.py OUT.jsonl SECONDS SEED"""

import json
import random
import sys
import time

import torch

CHANNELS = (1, 3, 8, 16, 24, 32, 48, 64, 64, 96, 128, 128, 160, 192, 256, 320, 512, 512, 1024)
SIDES = (4, 7, 8, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 160, 192, 224)
MOST_BYTES, MOST_WORK = 16e9, 1e12


def side_of_transform(shape):
    needed = shape["side"] + 2 * shape["padding"]
    return next((side for side in (16, 32, 64, 128, 256) if side >= needed), 512)


def random_shape():
    channels, outputs = random.choice(CHANNELS), random.choice(CHANNELS)
    if random.random() < 0.3:
        outputs = channels
    kernel = random.choice((1, 3, 3, 3, 3, 3, 5, 7))
    shape = {
        "batch": random.choice((1, 2, 4, 8, 16, 24, 32, 48, 64, 128, 256)),
        "channels": channels,
        "outputs": outputs,
        "side": random.choice(SIDES),
        "kernel": kernel,
        "padding": random.choice((kernel // 2, kernel // 2, kernel // 2, 0)),
    }
    side, images = side_of_transform(shape), shape["batch"] * (channels + outputs)
    transforms = 2 * (channels * outputs + images) * side * (side // 2 + 1) * 8
    work = shape["batch"] * channels * outputs * shape["side"] ** 2 * kernel**2
    small = shape["side"] + 2 * shape["padding"] < kernel
    return random_shape() if small or transforms > MOST_BYTES or work > MOST_WORK else shape


def greatest(function, result):
    torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=1000)
    function()
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    sizes = [event["size"] for event in events if event["action"] == "alloc"]
    size = result.numel() * result.element_size()
    if size in sizes:
        sizes.remove(size)
    return max(sizes, default=0)


def tried(shape):
    batch, channels, outputs, side = (
        shape[key] for key in ("batch", "channels", "outputs", "side")
    )
    kernel, padding = shape["kernel"], shape["padding"]
    out = side + 2 * padding - kernel + 1
    x = torch.randn(batch, channels, side, side, device="cuda")
    w = torch.randn(outputs, channels, kernel, kernel, device="cuda")
    g = torch.randn(batch, outputs, out, out, device="cuda")
    how = [1, 1], [padding, padding], [1, 1], False, [0, 0], 1

    def back(*mask):
        return torch.ops.aten.convolution_backward(g, x, w, None, *how, list(mask))

    return [
        greatest(lambda: torch.nn.functional.conv2d(x, w, None, 1, padding), g),
        greatest(lambda: back(True, False, False), x),
        greatest(lambda: back(False, True, False), w),
    ]


def main(path, seconds, seed):
    torch.backends.cudnn.benchmark = True
    random.seed(seed)
    end = time.time() + float(seconds)
    with open(path, "w", encoding="utf-8") as file:
        while time.time() < end:
            shape = random_shape()
            file.write(json.dumps({**shape, "tried": tried(shape)}) + "\n")
            file.flush()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main(*sys.argv[1:])

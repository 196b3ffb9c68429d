#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How data/conv_choice.toml is learned: which engine runs a convolution with kernel and stride 1.

`conv_choices.py measure OUT.jsonl SECONDS [SEED]`: on a GPU, what random convolutions and their gradients take.
`conv_choices.py ask TRACER.py DEVICE.json MEASURED.jsonl OUT.jsonl`: without a GPU (CUDA_VISIBLE_DEVICES empty), what cuDNN
says of them; TRACER.py are the parts of src/host/fit/tracer in one file, DEVICE.json what `cufit fit` sets CUFIT_FIT_CUDNN to.
`conv_choices.py learn ASKED.jsonl`: the rows of the table, with how often they are right for a quarter held out. Needs
scikit-learn. The rows of today were told apart by the engine that cuDNN names with the GPU in sight, not by sizes alone as here,
and measured in two rounds, of which the second has more narrow convolutions at large images.
"""
import json
import random
import sys
import time

WIDTHS = [8, 16, 24, 32, 40, 48, 64, 72, 80, 96, 112, 128, 144, 160, 192, 240, 256, 288, 320, 384, 448, 480, 512, 576, 640, 672, 768, 896, 960,
          1024, 1152, 1280, 1536, 2048]
BATCHES = [4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 56, 64, 80, 96, 128]
SIDES = [7, 7, 8, 10, 12, 14, 14, 16, 20, 28, 28, 32, 40, 56, 56, 64, 80, 112, 150]
PASSES = ["forward", "data_gradient", "weight_gradient"]
FEATURES = ("bytes batch channels outputs narrower wider pixels row8 row16 channels16 outputs16 sums_per_mille positions tile cluster "
            "engine").split()
TAKES = ["cublas", "samples", "own"]


def measure(out, seconds, seed):
    import torch
    random.seed(seed)

    def workspace(function, result):
        function()
        torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=1000)
        function()
        sizes = [event["size"] for event in torch.cuda.memory._snapshot()["device_traces"][0] if event["action"] == "alloc"]
        torch.cuda.memory._record_memory_history(enabled=None)
        if result in sizes:
            sizes.remove(result)
        return max(sizes, default=0)

    end = time.time() + seconds
    with open(out, "w", encoding="utf-8") as file:
        while time.time() < end:
            kind, batch, side = random.choice(("float32", "float16", "bfloat16")), random.choice(BATCHES), random.choice(SIDES)
            channels, outputs = random.choice(WIDTHS), random.choice(WIDTHS)
            if batch * max(channels, outputs) * side * side * 4 > 5e8:
                continue
            dtype = getattr(torch, kind)
            x = torch.randn(batch, channels, side, side, device="cuda", dtype=dtype)
            w = torch.randn(outputs, channels, 1, 1, device="cuda", dtype=dtype)
            g = torch.randn(batch, outputs, side, side, device="cuda", dtype=dtype)
            back = lambda mask: torch.ops.aten.convolution_backward(g, x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, mask)
            took = [workspace(function, t.numel() * t.element_size()) for function, t in
                    ((lambda: torch.nn.functional.conv2d(x, w), g), (lambda: back([True, False, False]), x), (lambda: back([False, True, False]), w))]
            file.write(json.dumps({"kind": kind, "batch": batch, "channels": channels, "outputs": outputs, "side": side, "took": took}) + "\n")


def ask(tracer, device, measured, out):
    import ctypes
    import torch
    torch.backends.cudnn.version()
    with open(tracer, encoding="utf-8") as file:
        names = {"__name__": "asked", "__file__": tracer}
        exec(compile(file.read(), tracer, "exec"), names)  # the tracer does nothing where no trace is wanted
    cudnn = names["Cudnn"](ctypes.CDLL(names["loaded_library"]("libcudnn.so.9")))
    with open(device, encoding="utf-8") as file:
        gpu = cudnn.device(json.load(file)[0][1])
    with open(measured, encoding="utf-8") as file, open(out, "w", encoding="utf-8") as to:
        for line in file:
            row = json.loads(line)
            x, w, y = ([row["batch"], row["channels"]] + [row["side"]] * 2, [row["outputs"], row["channels"], 1, 1],
                       [row["batch"], row["outputs"]] + [row["side"]] * 2)
            row["said"] = [cudnn.ask(gpu, False, way, names["Cudnn"].TYPES[row["kind"]], x, w, y, [1, 1], [0, 0], [1, 1], False, True, False)
                           for way in range(3)]
            to.write(json.dumps(row) + "\n")


def learn(asked):
    import numpy as np
    from sklearn.tree import DecisionTreeClassifier
    with open(asked, encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if row["side"] > 1]

    def described(row, way):
        size, batch, c, k, pixels = 4 if row["kind"] == "float32" else 2, row["batch"], row["channels"], row["outputs"], row["side"] ** 2
        said = row["said"][way] or [0] * 6
        io, samples, line = batch * (c + k) * pixels * size, batch * c * k * 4, pixels * size
        features = [size, batch, c, k, min(c, k), max(c, k), pixels, int(line % 8 == 0), int(line % 16 == 0), int(c * size % 16 == 0),
                    int(k * size % 16 == 0), 1000 * samples // io, batch * pixels, said[2], said[3], said[5]]
        costs = [400, samples, said[0]]
        took = row["took"][way]
        near = way == 2 and abs(took - samples) <= 1024
        takes = 0 if took <= 1024 else 1 if near and abs(took - said[0]) > 1024 else 2
        possible = costs if way == 2 else costs[::2]
        return features, takes, min(4, (max(possible) - min(possible)) / io) + 0.02  # what is at stake counts

    out = []

    def tree_rows(tree, node, way):
        left, right = tree.tree_.children_left[node], tree.tree_.children_right[node]
        if left < 0:
            return TAKES[int(tree.classes_[tree.tree_.value[node][0].argmax()])]
        a, b = tree_rows(tree, left, way), tree_rows(tree, right, way)
        return a if isinstance(a, str) and a == b else (FEATURES[tree.tree_.feature[node]], int(tree.tree_.threshold[node] // 1), a, b)

    def flat(name, part):
        at = len(out)
        if isinstance(part, str):
            out.append((name, "", 0, 0, part))
            return
        out.append(None)
        flat(name, part[2])
        other = len(out)
        flat(name, part[3])
        out[at] = name, part[0], part[1], other, ""

    for way, leaves in enumerate((96, 48, 96)):
        x, y, weight = (np.array(part) for part in zip(*(described(row, way) for row in rows)))
        kept = np.random.default_rng(1).random(len(rows)) < 0.75
        make = lambda: DecisionTreeClassifier(max_leaf_nodes=leaves, min_samples_leaf=10, random_state=0)
        held = make().fit(x[kept], y[kept], sample_weight=weight[kept])
        print("# %s: right for %.1f %% of those held out" % (PASSES[way], 100 * held.score(x[~kept], y[~kept])))
        flat(PASSES[way], tree_rows(make().fit(x, y, sample_weight=weight), 0, way))
    for row in out:
        print('  {pass = "%s", feature = "%s", most = %d, other = %d, takes = "%s"},' % row)


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"] and len(sys.argv) in (4, 5):
        measure(sys.argv[2], float(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) == 5 else 1)
    elif sys.argv[1:2] == ["ask"] and len(sys.argv) == 6:
        ask(*sys.argv[2:])
    elif sys.argv[1:2] == ["learn"] and len(sys.argv) == 3:
        learn(sys.argv[2])
    else:
        sys.exit(__doc__)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How data/conv_choice.toml is learned: which engine runs a convolution, where cuDNN does not offer it without a GPU.

`conv_choices.py measure OUT.jsonl SECONDS SEED [pointwise]`: on a GPU, what random convolutions and their gradients take.
`conv_choices.py ask PYTHON DEVICE.json MEASURED.jsonl OUT.jsonl`: without a GPU (CUDA_VISIBLE_DEVICES empty), what cuDNN
says of them; PYTHON is cufit's folder python/, DEVICE.json what `cufit fit` sets CUFIT_FIT_CUDNN to.
`conv_choices.py learn FIRST ASKED.jsonl...`: the rows of the table, the first of them its row FIRST, with how often they are right
for a quarter held out: of kernels and strides of 1, channels first, which engine runs each pass; of gradients of 3 x 3 weights in
fp32, which are computed by Winograd's way (a leaf where 2 % or more but not most are takes "perhaps"); of the gradients of weights,
channels last, in how many parts cuBLAS sums. Needs scikit-learn. The table of today was learned from rows of other sizes, too (of
traced programs, of one pixel's height, of up to 700 million values), one pass of each and measured in the same way, and from what
the table before it says of 22,000 usual ones.
"""
import ctypes
import json
import math
import random
import sys
import time

WIDTHS = [8, 16, 24, 32, 40, 48, 64, 72, 80, 96, 112, 128, 144, 160, 192, 224, 240, 256, 288, 320, 384, 448, 480, 512, 576, 640, 672, 768, 896, 960,
          1024, 1152, 1280, 1536, 2048]
BATCHES = [2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 56, 64, 80, 96, 128]
SIDES = [7, 7, 8, 10, 12, 14, 14, 16, 20, 24, 28, 28, 32, 40, 48, 56, 56, 64, 80, 96, 112, 128, 150, 192, 224]
PASSES = ["forward", "data_gradient", "weight_gradient"]
FEATURES = ("bytes batch channels outputs narrower wider pixels row8 row16 channels16 outputs16 sums_per_mille positions tile cluster "
            "engine groups weights").split()
PARTS = [FEATURES.index(name) for name in "batch channels outputs narrower wider positions weights".split()]
TAKES = ["cublas", "samples", "own"]
LEAVES = {"forward": 400, "data_gradient": 400, "weight_gradient": 400, "winograd": 48, "parts_16": 80, "parts_32": 80}
LEAST_SHARE = 0.02  # of a leaf from which on the upper value holds Winograd's way possible
ROW = '  {pass = "%s", feature = "%s", most = %d, other = %d, takes = "%s"},'


# One of the usual, or any: often of a round number, as likely between 1 and 2 as between 100 and 200.
def size(usual, most):
    if random.random() < 0.5:
        return random.choice(usual)
    value, unit = int(2 ** random.uniform(0, math.log2(most + 1))), random.choice((1, 1, 2, 4, 8, 16))
    return max(value // unit * unit, 1)


def random_convolution(pointwise):
    kind = random.choice(("float32", "float32", "float16", "bfloat16"))
    last = random.random() < (0.12 if kind == "float32" else 0.33)
    batch, side = size(BATCHES, 200), size(SIDES, 260)
    channels, outputs = size(WIDTHS, 2048), size(WIDTHS, 2048)
    if random.random() < 0.4:
        outputs = channels
    kernel = 1 if pointwise else random.choice([3, 3, 3, 3, 3, 5, 7, 2, 4, 1])
    stride = 1 if pointwise else 2 if kernel == 1 else random.choice([1, 1, 1, 2])
    if kernel in (2, 4) and random.random() < 0.7:
        stride = kernel
    dilation = 2 if kernel == 3 and random.random() < 0.06 else 1
    groups = 1 if pointwise else random.choice([1] * 8 + [2, 4, 8, 32])
    if channels % groups or outputs % groups or channels == groups:
        groups = 1
    padding = dilation * (kernel - 1) // 2
    out = (side + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    row = {"kind": kind, "last": int(last), "batch": batch, "channels": channels, "outputs": outputs, "side": side, "out": out, "kernel": kernel,
           "stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    values = batch * max(channels * side * side, outputs * out * out)
    work = batch * outputs * out * out * channels // groups * kernel * kernel
    return row if out >= 1 and values <= 150e6 and work <= 2e11 else random_convolution(pointwise)


def shapes(row):
    return ([row["batch"], row["channels"]] + [row["side"]] * 2, [row["outputs"], row["channels"] // row["groups"]] + [row["kernel"]] * 2,
            [row["batch"], row["outputs"]] + [row["out"]] * 2)


def measure(out, seconds, seed, pointwise):
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
            row = random_convolution(pointwise)
            order = torch.channels_last if row["last"] else torch.contiguous_format
            x, w, g = (torch.randn(*shape, device="cuda", dtype=getattr(torch, row["kind"])).contiguous(memory_format=order) for shape in shapes(row))
            stride, padding, dilation = ([row[name]] * 2 for name in ("stride", "padding", "dilation"))
            back = lambda mask: torch.ops.aten.convolution_backward(g, x, w, None, stride, padding, dilation, False, [0, 0], row["groups"], mask)
            forward = lambda: torch.nn.functional.conv2d(x, w, None, stride, padding, dilation, row["groups"])
            row["took"] = [workspace(function, t.numel() * t.element_size()) for function, t in
                           ((forward, g), (lambda: back([True, False, False]), x), (lambda: back([False, True, False]), w))]
            file.write(json.dumps(row) + "\n")


def ask(tracer, device, measured, out):
    import torch
    torch.backends.cudnn.version()
    sys.path.insert(0, tracer)
    from cufit_tracer.cuda.cudnn import Cudnn
    from cufit_tracer.cuda.cudnn_answers import loaded_library

    cudnn = Cudnn(ctypes.CDLL(loaded_library("libcudnn.so.9")))
    with open(device, encoding="utf-8") as file:
        gpu = cudnn.device(json.load(file)[0][1])
    with open(measured, encoding="utf-8") as file, open(out, "w", encoding="utf-8") as to:
        for line in file:
            row = json.loads(line)
            how = [[row[name]] * 2 for name in ("stride", "padding", "dilation")]
            row["said"] = [cudnn.ask(gpu, False, way, Cudnn.TYPES[row["kind"]], *shapes(row), *how, bool(row["last"]), True, False)
                           for way in range(3)]
            to.write(json.dumps(row) + "\n")


# ---- learning -----------------------------------------------------------------------------------------------------------------

def sizes_of(row):
    """Bytes of a value, of input and output, of a product per sample, of Winograd's 36 values for 4 x 4 results."""
    size, c, k = 4 if row["kind"] == "float32" else 2, row["channels"], row["outputs"]
    high, wide = row.get("results", [row["out"]] * 2)  # those of programs are not all square
    return (size, row["batch"] * (c + k) * row.get("pixels", row["side"] ** 2) * size, row["batch"] * c * k * 4,
            144 * ((c + k) * row["batch"] * -(-high // 4) * -(-wide // 4) + c * k // row["groups"]))


def features_of(row, said):
    size, io, samples, _ = sizes_of(row)
    batch, c, k, pixels = row["batch"], row["channels"], row["outputs"], row.get("pixels", row["side"] ** 2)
    blocks = max(said[3] // 32, 1) * (said[3] % 32)
    return [size, batch, c, k, min(c, k), max(c, k), pixels, int(pixels * size % 8 == 0), int(pixels * size % 16 == 0), int(c * size % 16 == 0),
            int(k * size % 16 == 0), 1000 * samples // io, batch * pixels, said[2], blocks, said[5], row["groups"], c * k]


# What a pass took, of TAKES, and how much is at stake.
def pointwise_choice(row, said, way):
    size, io, samples, _ = sizes_of(row)
    costs, took = ([400, samples, said[0]] if way == 2 else [400, said[0]]), row["took"][way]
    near = way == 2 and abs(took - samples) <= 1024
    takes = 0 if took <= 1024 else 1 if near and abs(took - said[0]) > 1024 else 2
    return takes, min(4, (max(costs) - min(costs)) / io) + 0.02


# A tree of scikit-learn as what its leaves take, or (feature, most, where it is at most that, where it is more).
def questions(tree, takes, names, node=0):
    left, right = tree.children_left[node], tree.children_right[node]
    if left < 0:
        return takes(tree.value[node][0])
    a, b = (questions(tree, takes, names, to) for to in (left, right))
    return a if isinstance(a, str) and a == b else (names[tree.feature[node]], int(tree.threshold[node] // 1), a, b)


# The same as rows of the table, after those of `out`.
def add_rows(out, name, part):
    at = len(out)
    if isinstance(part, str):
        out.append((name, "", 0, 0, part))
        return
    out.append(None)
    add_rows(out, name, part[2])
    other = len(out)
    add_rows(out, name, part[3])
    out[at] = name, part[0], part[1], other, ""


# How often four bytes of each weight are kept: as many products of a part of the pixels are summed.
def learn_parts(out, name, rows):
    import numpy as np
    from sklearn.tree import DecisionTreeRegressor
    x, sums, took = (np.array(part, float) for part in zip(*rows))
    kept = np.random.default_rng(1).random(len(took)) < 0.75
    make = lambda: DecisionTreeRegressor(max_leaf_nodes=LEAVES[name], min_samples_leaf=6, criterion="absolute_error", random_state=0)
    fit = lambda of: make().fit(x[of][:, PARTS], np.log2(took / sums + 0.3)[of], sample_weight=np.sqrt(sums[of]))
    parts = lambda value: round(2 ** value - 0.3)
    off = np.abs(np.array([parts(value) for value in fit(kept).predict(x[~kept][:, PARTS])]) * sums[~kept] - took[~kept]) / 2 ** 20
    print("# %s: of %d a quarter held out, off by %.2f MiB on average, %.1f %% by more than 1 MiB" % (name, len(took), off.mean(), 100 * (off > 1).mean()))
    tree = fit(kept | ~kept).tree_
    renamed = {at: FEATURES[column] for at, column in enumerate(PARTS)}
    add_rows(out, name, questions(tree, lambda value: str(parts(value[0])), renamed))


def learn(first, paths):
    import numpy as np
    from sklearn.tree import DecisionTreeClassifier
    known = {name: [] for name in LEAVES}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for row in map(json.loads, file):
                pointwise = (row["last"], row["kernel"], row["stride"]) == (0, 1, 1)
                for way, name in enumerate(PASSES if pointwise else ()):
                    if row["took"][way] is None:
                        continue
                    said = row["said"][way] or [0] * 6
                    known[name].append((features_of(row, said), *pointwise_choice(row, said, way)))
                said = row["said"][2] if row["took"][2] is not None else None
                if said and (row["last"], row["kernel"], row["stride"]) == (1, 1, 1):
                    name = "parts_32" if row["kind"] == "float32" else "parts_16"
                    known[name].append((features_of(row, said), 4 * row["channels"] * row["outputs"], row["took"][2]))
                if said and (row["kind"], row["last"], row["kernel"], row["stride"], row["dilation"]) == ("float32", 0, 3, 1, 1):
                    known["winograd"].append((features_of(row, said), abs(row["took"][2] - sizes_of(row)[3]) <= 1024, 1))
    out = []
    for name, rows in known.items():
        if not rows:
            continue
        if name.startswith("parts"):
            learn_parts(out, name, rows)
            continue
        x, y, weight = (np.array(part) for part in zip(*rows))
        make = lambda: DecisionTreeClassifier(max_leaf_nodes=LEAVES[name], min_samples_leaf=8, random_state=0)
        kept = np.random.default_rng(1).random(len(y)) < 0.75
        held = make().fit(x[kept], y[kept], sample_weight=weight[kept])
        print("# %s: of %d a quarter held out, %.1f %% of it right" % (name, len(y), 100 * held.score(x[~kept], y[~kept])))
        tree = make().fit(x, y, sample_weight=weight)
        takes = lambda shares: TAKES[int(tree.classes_[shares.argmax()])]
        if name == "winograd":
            share = held.predict_proba(x[~kept])[:, 1]
            print("#   neither told nor held possible: %d of %d" % ((y[~kept] & (share < LEAST_SHARE)).sum(), y[~kept].sum()))
            takes = lambda shares: "winograd" if shares[1] > 0.5 * shares.sum() else "perhaps" if shares[1] >= LEAST_SHARE * shares.sum() else "own"
        add_rows(out, name, questions(tree.tree_, takes, FEATURES))
    for name, feature, most, other, takes in out:
        print(ROW % (name, feature, most, other and other + first, takes))


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"] and len(sys.argv) in (5, 6):
        measure(sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), sys.argv[5:] == ["pointwise"])
    elif sys.argv[1:2] == ["ask"] and len(sys.argv) == 6:
        ask(*sys.argv[2:])
    elif sys.argv[1:2] == ["learn"] and len(sys.argv) > 3:
        learn(int(sys.argv[2]), sys.argv[3:])
    else:
        sys.exit(__doc__)

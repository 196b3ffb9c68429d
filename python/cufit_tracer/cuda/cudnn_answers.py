# SPDX-License-Identifier: Apache-2.0
"""The convolutions of a trace, of which cuDNN is asked."""

import os
import sys

from ..user_files import OWN
from .cudnn import Cudnn


# The convolutions of a trace, each asked at the batch sizes around the traced one. cuDNN 9.10 takes
# 2 to 3 ms for an answer; a number of questions bounds them, so that a busy machine asks the same.
# The seconds are for a library that never answers.
class CudnnAnswers:
    QUESTIONS, SECONDS = 12000, 900

    def __init__(self, devices, tf32, deterministic, benchmark):
        self.devices, self.rules = devices, (tf32, deterministic)
        self.benchmark = benchmark
        self.wanted = {}  # pass, type, numbers without the batch size: batch sizes

    def saw(self, way, kind, numbers):
        if (
            numbers[2] == numbers[4] > 1 and not numbers[6]
        ):  # of one channel per group: PyTorch has kernels of its own
            return
        key = way, kind, tuple(numbers[:1] + [0] + numbers[2:])
        self.wanted.setdefault(key, set()).add(numbers[1])

    # x, weights and y as cuDNN has them, and which of its operations runs.
    @staticmethod
    def operation(way, numbers, batch):
        _, _, channels, outputs, groups, transposed, last, spatial = numbers[:8]
        parts = [list(numbers[8 + i * spatial : 8 + (i + 1) * spatial]) for i in range(6)]
        if spatial == 1:  # PyTorch makes an image of one row of it
            parts = [[one] + part for one, part in zip((1, 1, 1, 1, 0, 1), parts)]
        inside, outside, kernel, stride, padding, dilation = parts
        x, y = [batch, channels] + inside, [batch, outputs] + outside
        if transposed:
            return (
                (1, 0, 2)[way],
                y,
                [channels, outputs // groups] + kernel,
                x,
                stride,
                padding,
                dilation,
                bool(last),
            )
        return (
            way,
            x,
            [outputs, channels // groups] + kernel,
            y,
            stride,
            padding,
            dilation,
            bool(last),
        )

    # The traced batch sizes, then those near them.
    @staticmethod
    def batches(traced):
        yield from sorted(traced)
        less = more = max(traced)
        for _ in range(8):
            more *= 2
            yield more
            if less % 2 == 0:
                less //= 2
                yield less

    def rows(self, cudnn):
        questions = self.QUESTIONS
        for place, (capability, properties) in enumerate(self.devices):
            least = questions - questions // (len(self.devices) - place)
            device = cudnn.device(properties)
            left = [(key, self.batches(traced), {}) for key, traced in self.wanted.items()]
            out = {key: row for key, _, row in left}
            refused = {key: [] for key in out}
            while left and questions > least:
                going = []
                for key, batches, row in left:
                    batch = next(batches, None)
                    way, kind, numbers = key
                    if (
                        batch is None
                        or batch * numbers[2] * numbers[8] > 1 << 36
                        or questions <= least
                    ):
                        continue
                    going.append((key, batches, row))
                    if batch not in row:
                        questions -= 1
                        doing, x, w, y, *rest = self.operation(way, numbers, batch)
                        answer = cudnn.ask(
                            device,
                            self.benchmark,
                            doing,
                            Cudnn.TYPES[kind],
                            x,
                            w,
                            y,
                            *rest,
                            *self.rules,
                        )
                        if answer is not None:
                            row[batch] = (batch, *answer)
                        elif batch in self.wanted[key]:
                            refused[key].append(batch)
                left = going
            for key, row in out.items():
                way, _, numbers = key
                # That it names no engine for the largest traced batch is an answer, too, whatever
                # it says of others.
                if max(self.wanted[key]) in refused[key]:
                    yield capability, way, numbers, []
                elif row:
                    yield capability, way, numbers, sorted(row.values())

    # Asked in a process of its own: what happens there happens to no trace, and a driver that this
    # one has begun to use knows no forks.
    def write(self, file):
        if not self.wanted or not self.devices:
            return
        import json
        import subprocess

        library = loaded_library("libcudnn.so.9")
        if not library:
            return
        wanted = [
            (way, kind, numbers, sorted(batches))
            for (way, kind, numbers), batches in self.wanted.items()
        ]
        question = json.dumps([self.devices, self.rules, self.benchmark, wanted])
        command = [
            sys.executable,
            "-S",
            "-E",
            os.path.join(OWN, "sitecustomize.py"),
            "--cudnn",
            library,
        ]
        try:
            asked = subprocess.run(
                command,
                input=question.encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
                timeout=self.SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired):
            return
        for line in asked.stdout.splitlines():
            try:
                capability, way, numbers, row = json.loads(line)
            except ValueError:  # it ended in the middle of a line
                break
            file.convolution(capability, way, numbers, row)


def loaded_library(name):
    try:
        with open("/proc/self/maps") as maps:
            for line in maps:
                path = line.rstrip("\n").partition("/")[2]
                if path.rpartition("/")[2].startswith(name):
                    return "/" + path
    except OSError:
        pass
    return ""


def answer_for_cudnn(path):
    import ctypes
    import json

    devices, rules, benchmark, wanted = json.load(sys.stdin)
    cudnn = Cudnn(ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL))
    if cudnn.library.cudnnGetVersion() < 90800:
        return
    answers = CudnnAnswers(devices, *rules, benchmark)
    answers.wanted = {
        (way, kind, tuple(numbers)): set(batches) for way, kind, numbers, batches in wanted
    }
    for row in answers.rows(cudnn):
        sys.stdout.write(json.dumps(row) + "\n")

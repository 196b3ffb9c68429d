# SPDX-License-Identifier: Apache-2.0
"""Writes a synthetic snapshot of about N events: training steps with parameters, activations freed in reverse,
temporaries and a slowly growing cache, placed by a simple first-fit. `python3 make_trace.py FILE.pickle [EVENTS]`"""

import bisect
import pickle
import random
import sys

MIB = 1 << 20


class Heap:
    """First fit over segments of 20 MiB or the request's size; best enough to make plausible addresses. Segments lie
    as a driver puts them: granules of 32 MiB downwards, and what fits into the rest of one goes there."""

    def __init__(self, trace, clock):
        self.trace, self.clock = trace, clock
        self.free = []  # (address, size), by address
        self.next = 0x7F0000000000
        self.rests = []  # (address, size), by address
        self.segments = []

    def take(self, size):
        for i, (address, have) in enumerate(self.free):
            if have >= size:
                if have - size > MIB or size <= MIB:
                    if have > size:
                        self.free[i] = (address + size, have - size)
                    else:
                        self.free.pop(i)
                else:
                    self.free.pop(i)
                    return address, have
                return address, size
        room = max(20 * MIB, -(-size // (2 * MIB)) * 2 * MIB)
        address = self.place(room)
        self.segments.append((address, room))
        self.trace.append(entry("segment_alloc", address, room, self.clock(), []))
        bisect.insort(self.free, (address, room))
        return self.take(size)

    def place(self, room):
        for i, (address, have) in enumerate(self.rests):
            if have >= room:
                self.rests[i:i + 1] = [(address + room, have - room)] if have > room else []
                return address
        granules = -(-room // (32 * MIB)) * 32 * MIB
        self.next -= granules
        if granules > room:
            bisect.insort(self.rests, (self.next + room, granules - room))
        return self.next

    def give(self, address, size):
        bisect.insort(self.free, (address, size))
        i = bisect.bisect_left(self.free, (address, size))
        starts = {a for a, _ in self.segments}
        if i + 1 < len(self.free) and address + size == self.free[i + 1][0] and self.free[i + 1][0] not in starts:
            self.free[i] = (address, size + self.free.pop(i + 1)[1])
        if i > 0 and self.free[i - 1][0] + self.free[i - 1][1] == address and address not in starts:
            left = self.free.pop(i - 1)
            self.free[i - 1] = (left[0], left[1] + self.free[i - 1][1])


def entry(action, address, size, time, frames):
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time, "frames": frames}


def frames_of(layer, name):
    return [{"name": "forward", "filename": "/env/lib/python3.12/site-packages/torch/nn/modules/linear.py", "line": 125},
            {"name": name, "filename": "/home/user/model/layers.py", "line": 40 + layer},
            {"name": "train", "filename": "/home/user/train.py", "line": 88}]


def make(events, seed=4):
    random.seed(seed)
    trace, time = [], [1_700_000_000_000_000]

    def clock():
        time[0] += random.randint(2, 60)
        return time[0]

    heap, live = Heap(trace, clock), {}

    def alloc(size, frames):
        size_rounded = -(-size // 512) * 512
        address, taken = heap.take(size_rounded)
        trace.append(entry("alloc", address, size, clock(), frames))
        live[address] = (taken, size, frames)
        return address

    def free(address):
        taken, size, frames = live.pop(address)
        trace.append(entry("free_requested", address, size, clock(), frames))
        trace.append(entry("free_completed", address, size, clock(), frames))
        heap.give(address, taken)

    layers = 48
    stacks = {(layer, name): frames_of(layer, name) for layer in range(layers) for name in ("attention", "mlp", "norm")}
    for layer in range(layers):
        for name in ("attention", "mlp"):
            alloc(12 * MIB, stacks[layer, name])
    while len(trace) < events:
        length = random.randint(200, 1000)
        kept = []
        for layer in range(layers):
            for name in ("attention", "mlp", "norm"):
                kept.append(alloc(length * 4096 * random.choice((1, 1, 2, 4)) + 8, stacks[layer, name]))
                for _ in range(6):
                    free(alloc(length * random.choice((512, 2048, 4096)), stacks[layer, name]))
        for address in reversed(kept):
            free(alloc(length * 2048, []))
            free(address)
        if random.random() < 0.02:
            alloc(3 * MIB, stacks[0, "norm"])
    blocks = {}
    for address, (taken, size, frames) in live.items():
        blocks[address] = (taken, size, frames, "active_allocated")
    for address, size in heap.free:
        blocks[address] = (size, 0, [], "inactive")
    segments = []
    for address, room in sorted(heap.segments):
        inside = [{"address": a, "size": blocks[a][0], "requested_size": blocks[a][1], "state": blocks[a][3], "frames": blocks[a][2]}
                  for a in sorted(b for b in blocks if address <= b < address + room)]
        held = sum(b["size"] for b in inside if b["state"] != "inactive")
        segments.append({"device": 0, "address": address, "total_size": room, "allocated_size": held, "active_size": held,
                         "requested_size": held, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
                         "is_expandable": False, "frames": [], "blocks": inside})
    return {"segments": segments, "device_traces": [trace]}


if __name__ == "__main__":
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2_000_000
    snapshot = make(count)
    with open(sys.argv[1], "wb") as out:
        pickle.dump(snapshot, out, protocol=4)
    print(len(snapshot["device_traces"][0]), "events")

# SPDX-License-Identifier: Apache-2.0
"""What the processes do with torch: the copies between pairs, and the sum of one rank."""

import os
import time

MODULUS = 1021  # a prime, so that no power-of-two shift of the data looks right
CHUNK = 1 << 24  # values that are made or compared at a time
PART_OF_MEMORY = 8  # of the free memory, at most the 8th part
SMALL_ROUNDS, ROUNDS, BATCHES = 50, 20, 3
COPY_BYTES, COPY_ROUNDS = 256 << 20, 5


class Job:
    def __init__(self, backend, device, ranks, most):
        self.backend, self.device, self.ranks, self.most = backend, device, ranks, most
        self.store = os.memfd_create("cufit_store")

    def place(self, torch, number):
        return torch.device(self.device, number) if self.device == "cuda" else torch.device("cpu")

    def open_devices(self, torch):
        if self.device != "cuda":
            return
        count = torch.cuda.device_count()
        if count < self.ranks:
            raise RuntimeError("torch sees %d of %d GPUs" % (count, self.ranks))

    def synchronize(self, torch, *places):
        for place in places:
            if place.type == "cuda":
                torch.cuda.synchronize(place)

    def free_bytes(self, torch, place):
        if place.type != "cuda":
            return self.most * PART_OF_MEMORY
        return torch.cuda.mem_get_info(place)[0]


def values(torch, first, last, ranks, place):
    """What the ranks of `ranks` have at these places, added up."""
    places = torch.arange(first, last, dtype=torch.int64, device=place).remainder_(MODULUS)
    total = torch.zeros(last - first, dtype=torch.int64, device=place)
    for rank in ranks:
        total += (places * (rank + 1)).remainder_(MODULUS)
    return total.to(torch.float32)


def fill(torch, data, ranks):
    for first in range(0, data.numel(), CHUNK):
        last = min(first + CHUNK, data.numel())
        data[first:last] = values(torch, first, last, ranks, data.device)


def compare(torch, data, ranks):
    """Empty, or what is wrong."""
    wrong, found = 0, ""
    for first in range(0, data.numel(), CHUNK):
        last = min(first + CHUNK, data.numel())
        want = values(torch, first, last, ranks, data.device)
        bad = (data[first:last] != want).nonzero()
        wrong += bad.shape[0]
        if bad.shape[0] and not found:
            at = int(bad[0])
            found = "value %d is %g instead of %g" % (
                first + at,
                float(data[first + at]),
                float(want[at]),
            )
    return "%d of %d values are wrong: %s" % (wrong, data.numel(), found) if wrong else ""


def copy_pairs(job, say):
    say(step="import of torch")
    import torch

    job.open_devices(torch)
    places = [job.place(torch, number) for number in range(job.ranks)]
    say(step="memory for the copies")
    room = min(job.free_bytes(torch, place) for place in places) // PART_OF_MEMORY
    count = min(job.most, room, COPY_BYTES) // 4
    say(bytes=count * 4)
    for a in range(job.ranks):
        source = torch.empty(count, device=places[a])
        fill(torch, source, [a])
        for b in range(job.ranks):
            if a != b:
                say(step="copy from %d to %d" % (a, b))
                say(pair=copy_pair(job, torch, source, a, b, places[b]))
        del source
    say(done=True)


def copy_pair(job, torch, source, a, b, place):
    access = None
    if job.device == "cuda":
        access = bool(torch.cuda.can_device_access_peer(b, a))
    target = torch.zeros(source.numel(), device=place)
    target.copy_(source)
    job.synchronize(torch, source.device, place)
    wrong = compare(torch, target, [a])
    best = 0.0
    for _ in range(COPY_ROUNDS):
        begin = time.monotonic()
        target.copy_(source, non_blocking=True)
        job.synchronize(torch, source.device, place)
        took = time.monotonic() - begin
        best = max(best, source.numel() * 4 / took if took > 0 else 0.0)
    return {"from": a, "to": b, "access": access, "wrong": wrong, "bytes_per_second": best}


class Rank:
    def __init__(self, job, rank, say):
        self.job, self.rank, self.say = job, rank, say
        self.everybody = range(job.ranks)

    def run(self):
        self.say(step="import of torch")
        import torch
        import torch.distributed as dist

        self.torch, self.dist = torch, dist
        self.begin()
        self.say(step="sum of 8 bytes")
        small = torch.empty(2, device=self.place)
        wrong = [self.sum_and_compare(small)]
        for _ in range(5):
            dist.all_reduce(small.zero_())
        seconds = self.timed(small, SMALL_ROUNDS)
        size = self.agreed_size()
        self.say(step="sum of %d bytes" % size)
        data = torch.empty(size // 4, device=self.place)
        # Every rank makes every sum, whatever it found: the others wait for it.
        wrong.append(self.sum_and_compare(data))
        speed = self.bus_speed(data.zero_())
        wrong.append(self.sum_and_compare(data))  # once more, when the links are warm
        first = next((one for one in wrong if one), "")
        self.say(small_seconds=seconds, bytes=size, bus=speed, wrong=first)
        self.say(step="end")
        self.meet("end", "1")
        self.say(done=True)

    def begin(self):
        from datetime import timedelta

        job, torch, dist = self.job, self.torch, self.dist
        self.say(step="start of the GPU", torch=str(torch.__version__))
        if job.backend == "nccl" and not dist.is_nccl_available():
            raise RuntimeError("torch has no NCCL")
        job.open_devices(torch)
        self.place = job.place(torch, self.rank)
        if self.place.type == "cuda":
            torch.cuda.set_device(self.place)
            torch.zeros(1, device=self.place)
        if job.backend == "nccl":
            version = torch.cuda.nccl.version()
            if not isinstance(version, tuple):  # before torch 1.10: 2708
                version = (version // 1000, version % 1000 // 100, version % 100)
            self.say(version=".".join(str(part) for part in version[:3]))
        self.say(step="meeting of the ranks")
        # The descriptor was inherited: the same file for each.
        self.store = dist.FileStore("/proc/self/fd/%d" % job.store, job.ranks)
        dist.init_process_group(
            job.backend,
            store=self.store,
            rank=self.rank,
            world_size=job.ranks,
            timeout=timedelta(seconds=600),  # this program's own limit is shorter
        )

    def meet(self, name, value):
        """What each rank says under this name."""
        self.store.set("%s/%d" % (name, self.rank), value)
        return [self.store.get("%s/%d" % (name, one)).decode() for one in self.everybody]

    def agreed_size(self):
        free = self.job.free_bytes(self.torch, self.place)
        room = min(int(one) for one in self.meet("free", str(free))) // PART_OF_MEMORY
        size = min(self.job.most, room) // 4 * 4
        if size <= 0:
            raise RuntimeError("no free memory")
        return size

    def sum_and_compare(self, data):
        fill(self.torch, data, [self.rank])
        self.dist.all_reduce(data)
        self.job.synchronize(self.torch, self.place)
        return compare(self.torch, data, self.everybody)

    def timed(self, data, rounds):
        self.dist.barrier()
        self.job.synchronize(self.torch, self.place)
        begin = time.monotonic()
        for _ in range(rounds):
            self.dist.all_reduce(data)
        self.job.synchronize(self.torch, self.place)
        return (time.monotonic() - begin) / rounds

    def bus_speed(self, data):
        """Bytes per second through each link, as nccl-tests count: 2(n-1)/n of the data."""
        self.timed(data, 3)
        best = 0.0
        for batch in range(BATCHES):
            took = self.meet("batch%d" % batch, repr(self.timed(data, ROUNDS)))
            n, seconds = self.job.ranks, max(float(one) for one in took)
            best = max(best, 2 * (n - 1) / n * data.numel() * 4 / max(seconds, 1e-9))
        return best

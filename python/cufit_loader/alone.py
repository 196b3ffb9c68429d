# SPDX-License-Identifier: Apache-2.0
"""A loader with another number of workers, iterated without a step."""

import time

MOST_BATCHES = 2000


# The same dataset, sampler and collation; torch's own class, since a subclass may move batches to a
# device as well.
def recreated(torch, loader, workers):
    words = {
        "dataset": loader.dataset,
        "num_workers": workers,
        "collate_fn": loader.collate_fn,
        "pin_memory": loader.pin_memory,
        "worker_init_fn": loader.worker_init_fn,
        "generator": loader.generator,
    }
    if workers > 0:
        words["prefetch_factor"] = loader.prefetch_factor or 2
        words["multiprocessing_context"] = loader.multiprocessing_context
        # An epoch may be short; and it is what is recommended.
        words["persistent_workers"] = True
    iterable = isinstance(loader.dataset, torch.utils.data.IterableDataset)
    if iterable or loader.batch_sampler is None:
        words["batch_size"] = loader.batch_size
        words["drop_last"] = loader.drop_last
        if not iterable:
            words["sampler"] = loader.sampler
    else:
        words["batch_sampler"] = loader.batch_sampler
    return torch.utils.data.DataLoader(**words)


# Seconds a batch when the workers run, and seconds to the first; over as many epochs as it takes.
def time_alone(torch, iterate, loader, workers, seconds):
    out = {"workers": workers, "seconds": None, "first_seconds": None, "batches": 0, "error": None}
    begin = time.perf_counter()
    times = []
    try:
        again = recreated(torch, loader, workers)
        while not is_enough(times, begin, workers, seconds):
            before = len(times)
            for _ in iterate(again):
                times.append(time.perf_counter())
                if is_enough(times, begin, workers, seconds):
                    break
            if len(times) == before:
                break  # an empty one
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        out["error"] = ("%s: %s" % (type(error).__name__, lines[0]))[:300]
    out["batches"] = len(times)
    if times:
        out["first_seconds"] = times[0] - begin
    # Batches come in rounds, one of each worker at about the same time: whole rounds are counted,
    # and the first one, with which the workers begin, is not.
    each = max(workers, 1)
    rounds = len(times) // each
    if rounds >= 2:
        out["seconds"] = (times[rounds * each - 1] - times[each - 1]) / ((rounds - 1) * each)
    return out


def is_enough(times, begin, workers, seconds):
    passed = time.perf_counter() - begin
    rounds = len(times) // max(workers, 1)
    return (passed > seconds and rounds >= 3) or len(times) >= MOST_BATCHES or passed > 4 * seconds

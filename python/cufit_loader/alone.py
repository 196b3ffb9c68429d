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
    iterable = isinstance(loader.dataset, torch.utils.data.IterableDataset)
    if iterable or loader.batch_sampler is None:
        words["batch_size"] = loader.batch_size
        words["drop_last"] = loader.drop_last
        if not iterable:
            words["sampler"] = loader.sampler
    else:
        words["batch_sampler"] = loader.batch_sampler
    return torch.utils.data.DataLoader(**words)


# Seconds a batch when the workers run, and seconds to the first batch.
def time_alone(torch, iterate, loader, workers, seconds):
    out = {"workers": workers, "seconds": None, "first_seconds": None, "batches": 0, "error": None}
    begin = time.perf_counter()
    times = []
    try:
        for _ in iterate(recreated(torch, loader, workers)):
            times.append(time.perf_counter())
            # Each worker has given one batch at least, and a few more came.
            enough = len(times) > workers + 2 and times[-1] - begin > seconds
            if enough or len(times) >= MOST_BATCHES or times[-1] - begin > 4 * seconds:
                break
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        out["error"] = ("%s: %s" % (type(error).__name__, lines[0]))[:300]
    out["batches"] = len(times)
    if times:
        out["first_seconds"] = times[0] - begin
    # The first round of the workers comes at once.
    skipped = min(max(workers, 1), len(times) // 2)
    if len(times) - skipped >= 2:
        out["seconds"] = (times[-1] - times[skipped]) / (len(times) - 1 - skipped)
    return out

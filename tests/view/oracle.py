# SPDX-License-Identifier: Apache-2.0
"""What a page must say, computed from the pickle alone: no code is shared with cufit."""

import gzip
import pickle


def read(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as file:
        return pickle.load(file)


class Run:
    """One device's trace: who lives when, how much is held from the driver."""

    def __init__(self, snapshot, device=0):
        self.trace = snapshot["device_traces"][device]
        self.segments = [s for s in snapshot["segments"] if s["device"] == device]
        self.blocks = []  # {address, requested, alloc, free, frames}
        live = {}
        for number, entry in enumerate(self.trace):
            if entry["action"] == "alloc":
                block = {"address": entry["addr"], "requested": entry["size"], "alloc": number, "free": None,
                         "frames": entry.get("frames")}
                live[entry["addr"]] = block
                self.blocks.append(block)
            elif entry["action"] == "free_requested" and entry["addr"] in live:
                live[entry["addr"]]["free"] = number
            elif entry["action"] == "free_completed":
                live.pop(entry["addr"], None)

    def is_whole(self):
        """False if the trace began late: then blocks exist that no event made."""
        held = sum(e["size"] * {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}.get(e["action"], 0)
                   for e in self.trace)
        return held == sum(s["total_size"] for s in self.segments)

    def living(self, event):
        return {b["address"]: b for b in self.blocks if b["alloc"] <= event and (b["free"] is None or b["free"] > event)}

    def reserved(self, event):
        """Bytes held from the driver after an event, counted back from the end."""
        signs = {"segment_alloc": -1, "segment_map": -1, "segment_free": 1, "segment_unmap": 1}
        later = sum(e["size"] * signs.get(e["action"], 0) for e in self.trace[event + 1:])
        return sum(s["total_size"] for s in self.segments) + later

    def ooms(self):
        return [(i, e["size"]) for i, e in enumerate(self.trace) if e["action"] == "oom"]

    def found(self, text):
        """Blocks with a frame whose function or file holds the text, and how many different stacks they have."""
        text = text.lower()
        hits = [b for b in self.blocks
                if any(text in f["name"].lower() or text in f["filename"].lower() for f in b["frames"] or [])]
        return len(hits), len({repr(b["frames"]) for b in hits})

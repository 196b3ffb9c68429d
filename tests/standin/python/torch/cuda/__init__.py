# SPDX-License-Identifier: Apache-2.0
"""torch.cuda: calls that wait for the first use of CUDA, a history, a snapshot with nothing in it."""
import os
import pickle
import time

observers = []
_waiting = []
_initialized = False


def _lazy_call(callback):
    if _initialized:
        callback()
    else:
        _waiting.append(callback)


def init():
    global _initialized
    _initialized = True
    for callback in _waiting:
        callback()


def run_out_of_memory():
    for observer in observers:
        observer(0, 2 << 30, 24 << 30, 1 << 20)


# A memory fraction, where a test sets one.
def device_count():
    return 1


def get_per_process_memory_fraction(device):
    return float(os.environ.get("STANDIN_FRACTION", "1"))


class get_device_properties:
    total_memory = 24 << 30

    def __init__(self, device):
        pass


class memory:
    @staticmethod
    def _snapshot():
        return {"segments": [], "device_traces": [[]]}

    @staticmethod
    def _record_memory_history(**settings):
        print("history", sorted(settings.items()))

    @staticmethod
    def _dump_snapshot(path):
        time.sleep(float(os.environ.get("STANDIN_SLOW", "0")))
        with open(path, "wb") as file:
            pickle.dump(memory._snapshot(), file)

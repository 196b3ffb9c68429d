# SPDX-License-Identifier: Apache-2.0
"""How much of an optimizer's state may stay on the GPU."""

import os

from .placing import device_of

# What libraries take later (workspaces, modules): cuBLAS alone has 32 MiB on Hopper.
CUSHION = 128 << 20
# Segments hold more than what lies in them. Where the first step shows more, that counts, for
# the next steps ask in another order. Seen on an H200: up to 7 % in plain segments.
LEAST_WASTE = {"expandable": 1.03, "plain": 1.08}
MOST_WASTE = 1.2


def budget(torch, optimizer, device, placed=()):
    """Bytes. Asked in the first step, before it makes state: forward and backward have run once,
    and the next ones need as much again, beside the state. `placed`: addresses of state that has
    its place."""
    cuda = torch.cuda
    free, _ = cuda.mem_get_info(device)
    reserved = cuda.memory_reserved(device)
    peak = cuda.max_memory_allocated(device)
    waste = cuda.max_memory_reserved(device) / max(peak, 1)
    waste = min(max(waste, LEAST_WASTE[segments()]), MOST_WASTE)
    # In the step itself: what is there now, and the temporaries of implementations that go over all
    # parameters at once (foreach), one copy of them.
    step = cuda.memory_allocated(device) + parameter_bytes(optimizer, device)
    # Cached blocks are given back, so that state does not break them up: the next pass asks for
    # them again.
    cuda.empty_cache()
    # State that is there already is part of the peak, and will be asked for a place as well.
    there = state_bytes(torch, optimizer, device, placed)
    return max(0, int(free + reserved - max(peak, step) * waste - CUSHION) + there)


def segments():
    # torch reads the second one only where the first is not set.
    text = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
    return "expandable" if "expandable_segments:True" in text else "plain"


def parameter_bytes(optimizer, device):
    total = 0
    for group in optimizer.param_groups:
        for param in group["params"]:
            local = getattr(param, "_local_tensor", param)
            if param.requires_grad and device_of(local) == device:
                total += local.numel() * local.element_size()
    return total


def state_bytes(torch, optimizer, device, placed):
    total = 0
    for state in optimizer.state.values():
        for value in state.values():
            if torch.is_tensor(value):
                local = getattr(value, "_local_tensor", value)
                if device_of(local) == device and local.data_ptr() not in placed:
                    total += local.numel() * local.element_size()
    return total

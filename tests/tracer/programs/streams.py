# SPDX-License-Identifier: Apache-2.0
"""Streams, events, CUDA graphs, generators, what a program asks of its device."""

import torch
from torch import nn

print(
    torch.cuda.is_available(),
    torch.cuda.device_count(),
    torch.cuda.get_device_name(),
    torch.cuda.get_device_capability(),
)
properties = torch.cuda.get_device_properties(0)
print(
    properties.total_memory,
    properties.multi_processor_count,
    torch.cuda.mem_get_info()[1],
    torch.cuda.get_arch_list(),
)
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
generator = torch.Generator("cuda").manual_seed(3)
with torch.cuda.stream(side):
    for _ in range(2):
        model(torch.randn(8, 256, device="cuda", generator=generator)).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    ahead = torch.ones(4096).to("cuda", non_blocking=True)
ahead.record_stream(torch.cuda.current_stream())
static = torch.zeros(8, 256, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    out = model(static).relu()
graph.replay()
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
begin.record()
end.record()
torch.cuda.synchronize()
torch.cuda.empty_cache()
print(
    begin.elapsed_time(end),
    torch.cuda.memory_stats()["allocated_bytes.all.current"] > 0,
    out.shape,
    generator.device,
)

# SPDX-License-Identifier: Apache-2.0
"""What collectives bring: all ranks have told what this one tells."""


class ToldValues:
    def __init__(self, tracer):
        self.tracer, self.torch = tracer, tracer.torch
        self.bring = {
            "c10d::alltoall_base_": self.exchange,
            "c10d::_allgather_base_": self.gather,
            "_c10d_functional::all_to_all_single": self.exchanged,
            "_c10d_functional::all_gather_into_tensor": self.gathered,
        }

    def saw(self, func, args, out):
        bring = self.bring.get(func._schema.name)
        if bring is not None:
            bring(args, out)

    def group(self, given):
        c10d = self.torch.distributed.distributed_c10d
        if isinstance(given, str):
            return c10d._resolve_process_group(given)
        unbox = getattr(self.torch.distributed.ProcessGroup, "unbox", None)
        return unbox(given) if unbox else c10d._get_default_group()

    # Of each rank the part that it has for this one.
    def from_each(self, value, group, sizes):
        if value is None or not value.dim():
            return None
        size, rank = group.size(), group.rank()
        parts = value.split(list(sizes)) if sizes else value.chunk(size)
        return self.torch.cat([parts[rank]] * size) if len(parts) == size else None

    def keep(self, tensor, value, given):
        shadows = self.tracer.shadows
        if value is not None and value.shape == tensor.shape:
            value = value.to(tensor.dtype)
            value._cufit_even = getattr(given, "_cufit_even", False)
            shadows[tensor] = value
        elif tensor in shadows:
            del shadows[tensor]

    def of(self, tensor):
        return self.tracer.shadows.get(tensor)

    def exchange(self, args, out):
        value = self.of(args[1])
        self.keep(args[0], self.from_each(value, self.group(args[2]), args[4]), value)

    def exchanged(self, args, out):
        value = self.of(args[0])
        self.keep(out, self.from_each(value, self.group(args[3]), args[2]), value)

    def gather(self, args, out):
        value = self.of(args[1])
        whole = (
            None
            if value is None
            else self.torch.cat([value.reshape(-1)] * self.group(args[2]).size())
        )
        self.keep(args[0], whole if whole is None else whole.view(args[0].shape), value)

    def gathered(self, args, out):
        value = self.of(args[0])
        whole = None if value is None else self.torch.cat([value] * args[1])
        self.keep(out, whole, value)

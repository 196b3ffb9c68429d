# SPDX-License-Identifier: Apache-2.0
"""What ranks tell each other in Python objects. These travel as bytes, and a tensor without
contents has none. What all ranks tell is what this one tells; what one tells all is kept
(told_objects.py). A stage of a pipeline learns the
shapes that it receives from the stage before. The traces of ranks run one after another: what each
sends is written to a folder (SENT) and read by those that come after."""

import json
import os

from .told_objects import Told


def patch_objects(tracer, modules):
    mail = tracer.mail = Mail(tracer)
    told = Told(tracer, mail)
    for function in (
        told.all_gather_object,
        told.gather_object,
        told.scatter_object_list,
        told.broadcast_object_list,
        mail.send_object_list,
        mail.recv_object_list,
    ):
        for module in modules:
            if hasattr(module, function.__name__):
                setattr(module, function.__name__, function)


class Mail:
    def __init__(self, tracer):
        self.tracer, self.torch = tracer, tracer.torch
        self.folder = tracer.wanted["SENT"]
        self.sent, self.received = {}, {}  # how often, by the other rank
        self.stages = False  # whether ranks are stages of a pipeline

    # As torch.distributed has them. A rank within the group is `group_dst`, `group_src`.
    def send_object_list(self, objects, dst=None, group=None, device=None, group_dst=None, **more):
        other = self.rank(dst, group, group_dst)
        self.tell_that_ranks_differ()
        number = self.sent[other] = self.sent.get(other, 0) + 1
        if self.folder:
            os.makedirs(self.folder, exist_ok=True)
            with open(self.path(self.own(), other, number), "w") as file:
                json.dump(self.written(list(objects)), file)

    def recv_object_list(self, objects, src=None, group=None, device=None, group_src=None, **more):
        other = self.rank(src, group, group_src)
        self.tell_that_ranks_differ()
        number = self.received[other] = self.received.get(other, 0) + 1
        path = self.path(other, self.own(), number)
        if not self.folder or not os.path.exists(path):
            said = "what rank %d sends to rank %d is not known: it was not traced before"
            raise RuntimeError(said % (other, self.own()))
        with open(path) as file:
            objects[:] = self.read(json.load(file))
        return other

    def tell_that_ranks_differ(self):
        self.stages = True
        self.tracer.file.fact("ranks_differ", "stages of a pipeline")

    def own(self):
        return self.torch.distributed.get_rank()

    def rank(self, world, group, within):
        if world is None and within is not None:
            return self.torch.distributed.get_global_rank(group, within) if group else within
        return 0 if world is None else world

    def path(self, source, target, number):
        name = source, target, self.torch.distributed.get_world_size(), number
        return os.path.join(self.folder or "", "%d-%d-of-%d-%d.json" % name)

    # Only what has a plain form: no code runs when it is read.
    def written(self, value):
        if isinstance(value, self.torch.Tensor):
            dtype = str(value.dtype).split(".")[-1]
            return {"shape": list(value.shape), "stride": list(value.stride()), "dtype": dtype}
        if isinstance(value, (list, tuple)):
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [self.written(item) for item in value]}
        if isinstance(value, dict):
            return {"dict": [[self.written(k), self.written(v)] for k, v in value.items()]}
        if value is None or isinstance(value, (bool, int, float, str)):
            return {"value": value}
        raise RuntimeError("an object of %s is sent to another rank" % type(value).__name__)

    def read(self, value):
        if "shape" in value:
            dtype = getattr(self.torch, value["dtype"])
            size, stride = value["shape"], value["stride"]
            return self.torch.empty_strided(size, stride, dtype=dtype, device="meta")
        if "list" in value or "tuple" in value:
            items = [self.read(item) for item in value.get("list", value.get("tuple"))]
            return items if "list" in value else tuple(items)
        if "dict" in value:
            return {self.read(k): self.read(v) for k, v in value["dict"]}
        return value["value"]

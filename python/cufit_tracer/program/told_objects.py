# SPDX-License-Identifier: Apache-2.0
"""Python objects that one rank tells several: a configuration that rank 0 made, the names of files.
Rank 0 is traced before the others. What each rank tells is kept in the folder of what ranks send
(SENT), in order, and read there by the ranks that are traced later."""

import hashlib
import io
import os
import pickle

# Of all that a rank tells; what comes later is not kept.
MOST_BYTES = 1 << 28


class Told:
    def __init__(self, tracer, mail):
        self.tracer, self.torch, self.mail = tracer, tracer.torch, mail
        self.calls, self.bytes = {}, 0  # how often, by the ranks of the group

    # As torch.distributed names them.
    def all_gather_object(self, object_list, obj, group=None):
        self.tracer.communicators.ring(group)
        object_list[:] = [obj] * len(object_list)

    def gather_object(self, obj, object_gather_list=None, dst=None, group=None, *args, **kwargs):
        self.tracer.communicators.ring(group)
        if object_gather_list is not None:
            object_gather_list[:] = [obj] * len(object_gather_list)

    def broadcast_object_list(
        self, object_list, src=None, group=None, device=None, group_src=None, **more
    ):
        told = self.told(list(object_list), src, group, group_src)
        if told is not None:
            object_list[:] = told[: len(object_list)]

    def scatter_object_list(
        self, scatter_object_output_list, scatter_object_input_list=None, src=None, group=None,
        group_src=None, **more,
    ):  # fmt: skip
        given = list(scatter_object_input_list or [None])
        told = self.told(given, src, group, group_src)
        place = max(0, self.torch.distributed.get_rank(group))
        parts = given if told is None else told
        scatter_object_output_list[:1] = parts[place : place + 1] or parts[:1]

    # What rank `src` told in this call; None where it is not known, or nobody else.
    def told(self, objects, src, group, group_src):
        self.tracer.communicators.ring(group)
        source = self.mail.rank(src, group, group_src)
        members = self.members(group)
        if not self.mail.folder or len(members) < 2:
            return objects
        number = self.calls[members] = self.calls.get(members, 0) + 1
        path = self.path(source, members, number)
        if self.mail.own() == source:
            self.keep(path, objects)
            return objects
        known = self.known(path)
        if known is None:
            said = "what rank %d tells the others in objects is not known: those of this rank stay"
            self.tracer.file.note("assumed", said % source, self.tracer.source())
        return known

    def members(self, group):
        from torch.distributed import distributed_c10d as c10d

        try:
            return tuple(c10d.get_process_group_ranks(group or c10d._get_default_group()))
        except (KeyError, ValueError, RuntimeError):  # this rank is none of the group
            return ()

    def path(self, source, members, number):
        name = hashlib.sha256(repr(members).encode()).hexdigest()[:16]
        return os.path.join(self.mail.folder, "told-%d-%s-%d.pickle" % (source, name, number))

    # As the program's own pickle would travel.
    def keep(self, path, objects):
        out = io.BytesIO()
        pickler = pickle.Pickler(out)
        pickler.persistent_id = self.without_contents
        try:
            pickler.dump(objects)
        except Exception:  # it would fail on GPUs, too
            return
        self.bytes += out.tell()
        if self.bytes <= MOST_BYTES:
            os.makedirs(self.mail.folder, exist_ok=True)
            with open(path, "wb") as file:
                file.write(out.getvalue())

    def known(self, path):
        if not os.path.exists(path):
            return None
        with open(path, "rb") as file:
            unpickler = pickle.Unpickler(file)
            unpickler.persistent_load = self.made_anew
            try:
                return unpickler.load()
            except Exception:  # a class that this rank does not have
                return None

    def without_contents(self, value):
        torch = self.torch
        if not isinstance(value, torch.Tensor):
            return None
        kind, shape = str(value.dtype).split(".")[-1], tuple(value.shape)
        if value.layout is not torch.strided:
            raise pickle.PicklingError("a sparse tensor")
        if isinstance(value, self.tracer.FakeTensor) or value.device.type != "cpu":
            return kind, shape, value.stride(), str(value.device)
        flat = value.detach().contiguous().reshape(-1).view(torch.uint8)
        return kind, shape, None, flat.numpy().tobytes()

    def made_anew(self, said):
        torch, (kind, shape, stride, where) = self.torch, said
        dtype = getattr(torch, kind)
        if stride is not None:
            return torch.empty_strided(shape, stride, dtype=dtype, device=where)
        flat = torch.frombuffer(bytearray(where), dtype=torch.uint8) if where else torch.empty(0)
        return flat.view(dtype).reshape(shape) if where else torch.empty(shape, dtype=dtype)

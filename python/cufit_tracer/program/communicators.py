# SPDX-License-Identifier: Apache-2.0
"""Which communicators of NCCL this rank makes, and whom it is connected with. NCCL makes one where
a group is first used, its rings at the first collective, and the buffers between two ranks at the
first send (data/gpu_memory.toml: nccl_memory). A mesh whose groups nobody uses takes nothing."""

import contextlib
import os

from .launchers import PLACED, number

RINGS = {
    "allgather_",
    "allgather_coalesced_",
    "allgather_into_tensor_coalesced_",
    "_allgather_base_",
    "allreduce_",
    "allreduce_coalesced_",
    "barrier",
    "broadcast_",
    "reduce_",
    "reduce_scatter_",
    "reduce_scatter_tensor_coalesced_",
    "_reduce_scatter_base_",
}
SPACES = ("c10d::", "_c10d_functional::", "c10d_functional::", "_c10d_functional_autograd::")
WHOLE = "the group of all ranks"
ANY = -1  # of `recv_any_source_`


class Communicators:
    def __init__(self, tracer):
        self.tracer, self.c10d = tracer, tracer.torch.distributed.distributed_c10d
        self.eager = self.batched = False
        self.used, self.rings = set(), set()
        self.sends, self.receives = set(), set()  # (communicator, the other rank)
        self.others = set()  # names of groups that are not of NCCL
        self.places = {}  # of an operator, where its group stands

    # With `device_id` communicators are made with their groups, and sends need none of their own.
    def begin(self, is_nccl, device):
        self.others = set() if is_nccl else {self.c10d._get_default_group().group_name}
        self.eager = is_nccl and device is not None
        if self.eager:
            self.used.add(WHOLE)
        if is_nccl:
            self.tell()

    def made(self, group, is_nccl):
        if group is self.c10d.GroupMember.NON_GROUP_MEMBER or group is None:
            return
        if not is_nccl:
            self.others.add(group.group_name)
        elif self.eager and group.size() > 1:
            self.used.add(self.named(group))
            self.tell()

    # Sends of a batch go through the communicator of their group.
    @contextlib.contextmanager
    def one_batch(self):
        self.batched = True
        try:
            yield
        finally:
            self.batched = False

    def saw(self, func, args):
        name = func._schema.name
        if not name.startswith(SPACES):
            return
        space, name = name.split("::")
        group = self.group_of(func, args)
        if group is None:
            return
        if space != "c10d":
            self.exchanges(group) if name == "all_to_all_single" else self.ring(group)
        elif name in RINGS:
            self.ring(group)
        elif name in ("alltoall_", "alltoall_base_"):
            self.exchanges(group)
        elif name in ("send", "recv_", "recv_any_source_"):
            self.pair(group, name == "send", ANY if name == "recv_any_source_" else args[2])
        elif name in ("gather_", "scatter_"):
            self.spread(group, args[func_place(func, "root_rank")], name == "scatter_")

    def group_of(self, func, args):
        place = self.places.get(func)
        if place is None:
            place = self.places[func] = func_place(func, "process_group", "group_name", "group")
        given = args[place] if 0 <= place < len(args) else None
        if isinstance(given, str):
            return self.c10d._resolve_process_group(given)
        unbox = getattr(self.tracer.torch.distributed.ProcessGroup, "unbox", None)
        if given is None or unbox is None:
            return self.c10d._get_default_group()
        return unbox(given)

    def named(self, group):
        return WHOLE if group == self.c10d._get_default_group() else group.group_name

    def counts(self, group):
        return group.size() > 1 and group.group_name not in self.others

    def ring(self, group=None):
        if group is None and self.c10d.is_initialized():
            group = self.c10d._get_default_group()
        if group is not None and self.counts(group):
            self.add(self.named(group), self.rings, self.named(group))

    def exchanges(self, group):
        for other in self.ranks_beside(group):
            self.add(self.named(group), self.sends, (self.named(group), other))
            self.add(self.named(group), self.receives, (self.named(group), other))

    # One rank has what the others get, or gets what they have: PyTorch makes sends of these, and
    # receiving takes more than sending.
    def spread(self, group, root, from_root):
        if not self.counts(group):
            return
        if not self.tracer.mail.stages:
            self.tracer.file.fact("ranks_differ", "tensors that one rank sends to the others")
        at_root = group.rank() == root
        ways = self.sends if at_root == from_root else self.receives
        for other in self.ranks_beside(group) if at_root else (root,):
            self.add(self.named(group), ways, (self.named(group), other))

    def pair(self, group, sends, other):
        if not self.counts(group):
            return
        name = self.named(group)
        if not self.eager and not self.batched:
            name = (name, other)
        self.add(name, self.sends if sends else self.receives, (name, other))

    # Between nodes there are no such buffers.
    def ranks_beside(self, group):
        if not self.counts(group):
            return ()
        node = min(group.size(), number(os.environ.get(PLACED)) or group.size())
        return [other for other in range(node) if other != group.rank() % node]

    def add(self, name, ways, way):
        if name not in self.used or way not in ways:
            self.used.add(name)
            ways.add(way)
            self.tell()

    # What the group of all ranks takes is counted from the start: most programs use it. It is not
    # where others are seen instead.
    def tell(self):
        used, rings = set(self.used), set(self.rings)
        if not used or (used == {WHOLE} and not self.sends and not self.receives):
            used.add(WHOLE)
            rings.add(WHOLE)
        for key, of in (
            ("communicators", used),
            ("rings", rings),
            ("sends", self.sends),
            ("receives", self.receives),
        ):
            self.tracer.file.fact("nccl_" + key, len(of))


def func_place(func, *names):
    for place, argument in enumerate(func._schema.arguments):
        if argument.name in names:
            return place
    return -1

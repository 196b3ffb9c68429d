# SPDX-License-Identifier: Apache-2.0
"""What cuDNN itself says of a convolution on a GPU that is not there."""


# Since 9.8 cuDNN answers for a GPU that is not there, from a description of it (cudnn_graph.h,
# CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR; the release notes call it deviceless compilation): which of
# its engines its heuristics put first for a convolution and what workspace that one needs. PyTorch
# asks the same question in the same way (aten/src/ATen/native/cudnn/Conv_v8.cpp), so no table has
# to guess. The numbers below are of the enumerations in cudnn_graph.h.
class Cudnn:
    CONVOLUTION, ENGINE, ENGINE_CONFIG, HEURISTICS, KNOB, GRAPH, TENSOR, DEVICE = (
        1,
        2,
        3,
        4,
        7,
        15,
        17,
        38,
    )
    OPERATIONS = {0: (10, 700), 1: (12, 706), 2: (11, 712)}  # pass: descriptor, its first attribute
    TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 9}
    TYPE_OF_TYPES, INT64, FLOAT, MODE, HEURISTIC_MODE, KNOB_TYPE, NOTE, DESCRIPTOR, CHARACTERS = (
        1,
        3,
        4,
        7,
        8,
        9,
        11,
        15,
        24,
    )
    TENSOR_CORE, DOWN_CONVERT, NONDETERMINISTIC = 0, 1, 4  # numerical notes of an engine
    TILE, WORKSPACE, CLUSTER_M, CLUSTER_N = 2, 25, 27, 28  # knobs of an engine

    class Refused(Exception):
        pass

    def __init__(self, library):
        import ctypes

        self.c = ctypes
        self.library = library
        self.made = []
        library.cudnnGetVersion.restype = ctypes.c_size_t

    def _ok(self, status):
        if status:
            raise Cudnn.Refused(status)

    def make(self, kind):
        out = self.c.c_void_p()
        self._ok(self.library.cudnnBackendCreateDescriptor(kind, self.c.byref(out)))
        self.made.append(out)
        return out

    def drop(self):
        for made in reversed(self.made):
            self.library.cudnnBackendDestroyDescriptor(made)
        self.made = []

    def _set(self, of, attribute, kind, values, count):
        self._ok(
            self.library.cudnnBackendSetAttribute(
                of, attribute, kind, self.c.c_int64(count), values
            )
        )

    def put(self, of, attribute, kind, *values):
        if kind == self.DESCRIPTOR:
            array = (self.c.c_void_p * len(values))(*[value.value for value in values])
        else:
            of_kind = {self.INT64: self.c.c_int64, self.FLOAT: self.c.c_float}.get(
                kind, self.c.c_int
            )
            array = (of_kind * len(values))(*values)
        self._set(of, attribute, kind, array, len(values))

    def done(self, of):
        self._ok(self.library.cudnnBackendFinalize(of))
        return of

    def read(self, of, attribute, kind, array, room):
        count = self.c.c_int64()
        self._ok(
            self.library.cudnnBackendGetAttribute(
                of, attribute, kind, self.c.c_int64(room), self.c.byref(count), array
            )
        )
        return count.value

    def number(self, of, attribute):
        out = self.c.c_int64()
        self.read(of, attribute, self.INT64, self.c.byref(out), 1)
        return out.value

    # `properties`: what CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION gives on the GPU.
    def device(self, properties):
        out = self.make(self.DEVICE)
        import json

        text = json.dumps(properties).encode()
        self._set(out, 2702, self.CHARACTERS, self.c.create_string_buffer(text), len(text))
        self.made.remove(self.done(out))
        return out

    def tensor(self, name, kind, sizes, last):
        order = [0, *range(2, len(sizes)), 1] if last else list(range(len(sizes)))
        strides, stride = [0] * len(sizes), 1
        for dimension in reversed(order):
            strides[dimension] = stride
            stride *= sizes[dimension]
        out = self.make(self.TENSOR)
        self.put(out, 901, self.TYPE_OF_TYPES, kind)
        self.put(out, 902, self.INT64, *sizes)
        self.put(out, 903, self.INT64, *strides)
        self.put(out, 906, self.INT64, ord(name))
        self.put(out, 900, self.INT64, 32)  # PyTorch's blocks are aligned to more
        return self.done(out)

    # The engines in the order of preference, as PyTorch keeps them.
    def engines(
        self, device, way, kind, x, w, y, stride, padding, dilation, last, tf32, deterministic, mode
    ):
        descriptor, first = self.OPERATIONS[way]
        convolution = self.make(self.CONVOLUTION)
        self.put(convolution, 100, self.TYPE_OF_TYPES, 1 if kind == 1 else 0)
        self.put(convolution, 101, self.MODE, 1)  # cross-correlation
        self.put(convolution, 106, self.INT64, len(stride))
        for attribute, values in ((102, dilation), (103, stride), (104, padding), (105, padding)):
            self.put(convolution, attribute, self.INT64, *values)
        self.done(convolution)
        operation = self.make(descriptor)
        self.put(operation, first, self.FLOAT, 1.0)
        self.put(operation, first + 1, self.FLOAT, 0.0)
        self.put(operation, first + 2, self.DESCRIPTOR, convolution)
        # Forward and of the data: weights, x, y; of the weights: weights, x, y as well.
        for attribute, (name, sizes) in zip(
            (first + 3, first + 4, first + 5), (("w", w), ("x", x), ("y", y))
        ):
            self.put(operation, attribute, self.DESCRIPTOR, self.tensor(name, kind, sizes, last))
        self.done(operation)
        graph = self.make(self.GRAPH)
        self.put(graph, 801, self.DESCRIPTOR, operation)
        self.done(graph)
        heuristics = self.make(self.HEURISTICS)
        self.put(heuristics, 201, self.DESCRIPTOR, graph)
        self.put(heuristics, 200, self.HEURISTIC_MODE, mode)
        self.put(heuristics, 204, self.DESCRIPTOR, device)
        self.done(heuristics)
        count = self.read(heuristics, 202, self.DESCRIPTOR, None, 0)
        room = (self.c.c_void_p * count)(
            *[self.make(self.ENGINE_CONFIG).value for _ in range(count)]
        )
        for at in range(self.read(heuristics, 202, self.DESCRIPTOR, room, count) if count else 0):
            config = self.c.c_void_p(room[at])
            engine = (self.c.c_void_p * 1)(self.make(self.ENGINE).value)
            self.read(config, 300, self.DESCRIPTOR, engine, 1)
            notes = (self.c.c_int * 16)()
            notes = set(notes[: self.read(self.c.c_void_p(engine[0]), 1303, self.NOTE, notes, 16)])
            if self.DOWN_CONVERT in notes or (deterministic and self.NONDETERMINISTIC in notes):
                continue
            if kind == 0 and not tf32 and self.TENSOR_CORE in notes:
                continue
            yield config, self.number(self.c.c_void_p(engine[0]), 1301)

    def knobs(self, config):
        room = (self.c.c_void_p * 64)(*[self.make(self.KNOB).value for _ in range(64)])
        out = {}
        for at in range(self.read(config, 302, self.DESCRIPTOR, room, 64)):
            knob = self.c.c_void_p(room[at])
            kind = self.c.c_int()
            self.read(knob, 600, self.KNOB_TYPE, self.c.byref(kind), 1)
            out[kind.value] = self.number(knob, 601)
        return out

    # Bytes of the first engine, and with `benchmark` the most over all that PyTorch would try; its
    # TILE_SIZE + 1, 32 times a cluster's blocks down and those across, whether it may divide sums
    # (each 0: no such knob), its number. None: no engine.
    def ask(self, device, benchmark, *convolution):
        first, most = None, 0
        try:
            for mode in (0, 2) if benchmark else (0,):
                for config, engine in self.engines(device, *convolution, mode):
                    size = self.number(
                        config, 303
                    )  # a plan of it, which takes long for some, says the same
                    if size < 0 or engine < 0:  # seen once, of a driver's cuDNN beside a hidden GPU
                        continue
                    if first is None:
                        knobs = self.knobs(config)
                        cluster = max(knobs.get(self.CLUSTER_M, 0), 0) * 32 + max(
                            knobs.get(self.CLUSTER_N, 0), 0
                        )
                        first = (
                            size,
                            knobs.get(self.TILE, -1) + 1,
                            cluster,
                            int(knobs.get(self.WORKSPACE) == 0),
                            engine,
                        )
                    most = max(most, size)
                    if not benchmark:
                        return first[0], most, *first[1:]
        except Cudnn.Refused:
            pass
        finally:
            self.drop()
        return None if first is None else (first[0], most, *first[1:])

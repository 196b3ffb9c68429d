# SPDX-License-Identifier: Apache-2.0
"""The dispatch mode: every operator of the program passes through it."""

from .known_operators import KnownOperators
from .mode import Operators


def make_mode(tracer):
    from torch.utils._python_dispatch import TorchDispatchMode

    operators = Operators(tracer)
    known, FakeTensor = KnownOperators(tracer, operators), tracer.FakeTensor
    device_of = tracer.torch.ops.prim.device.default

    class Mode(TorchDispatchMode):
        # What torch puts around every call, so that dynamo does not look into it; where something
        # is compiled, compile/dynamo.py does.
        @classmethod
        def _should_skip_dynamo(cls):
            return False

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            # A tensor of other tensors (DTensor) takes itself apart, and its part comes here.
            if any(kind in tracer.composed for kind in types):
                return NotImplemented
            tracer.operators += 1
            if func is device_of and type(args[0]) is FakeTensor:
                return args[0].fake_device  # PyTorch asks for it twice in every operator
            kwargs = tracer.device.of_own(kwargs or {})
            key = known.key_of(func, args, kwargs)
            if key is not None:
                with operators.one_by_one:
                    done = known.known.get(key)
                    if done is not None:
                        return known.again(done, func, args)
            tensors, any_fake = operators.tensors_of(args, kwargs)
            device = kwargs.get("device")
            if not any_fake and not operators.is_cuda(device):
                return operators.run_on_cpu(func, args, kwargs, tensors)
            with operators.one_by_one:
                if key is not None and key not in known.known:
                    return known.learn(key, self, func, args, kwargs, tensors, device)
                return operators.run(self, func, args, kwargs, tensors, device, any_fake)

    return Mode()

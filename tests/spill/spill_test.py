#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where `cufit run --spill optimizer` puts the state of real optimizers, under a real PyTorch on
the CPU: the one device is taken for a GPU, and a pool that counts for host memory.

spill_test.py BUILD: starts itself with the Python of BUILD/torch (tools/fetch-torch); ends with 77
where there is none."""

import contextlib
import copy
import os
import subprocess
import sys
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
MIB = 1 << 20


class Pools:
    """Stands for torch.cuda: what is made inside of use_mem_pool lies on the host."""

    class OutOfMemoryError(RuntimeError):
        pass

    def __init__(self, host=1 << 40):
        self.inside, self.host = 0, host

    @contextlib.contextmanager
    def use_mem_pool(self, pool, device):
        if self.host <= 0:
            raise self.OutOfMemoryError()
        self.inside += 1
        yield
        self.inside -= 1


class SpillTest(unittest.TestCase):
    def setUp(self):
        import torch
        from cufit_spill import budget, fused, placing

        for module in (budget, fused, placing):
            module.device_of = lambda tensor: 0
        self.real = torch
        self.cuda = Pools()
        self.torch = types.SimpleNamespace(
            **{name: getattr(torch, name) for name in dir(torch) if not name.startswith("__")}
        )
        self.torch.cuda = self.cuda

    def optimizer(self, kind, count=4, **options):
        torch = self.real
        params = [torch.nn.Parameter(torch.ones(512, 1024)) for _ in range(count)]  # 2 MiB each
        for param in params:
            param.grad = torch.full_like(param, 0.5)
        return kind(params, lr=0.1, **options)

    # One step under the mode; bytes that went to the host.
    def step(self, optimizer, room):
        from cufit_spill.placing import placing_class

        placing = placing_class(self.real)(self.torch, {0: room}, {0: None})
        placing.enter()
        optimizer.step()
        placing.leave()
        placing.move_rest(optimizer)
        return placing

    def values(self, optimizer):
        return [param.detach().clone() for g in optimizer.param_groups for param in g["params"]]

    def test_what_has_room_stays_and_the_rest_goes(self):
        for room, kept in ((0, 0), (5 * MIB, 4), (100 * MIB, 16)):
            placing = self.step(self.optimizer(self.real.optim.AdamW), room)
            self.assertEqual(placing.kept, kept * MIB)
            self.assertEqual(placing.spilled, (16 - kept) * MIB)

    def test_the_values_are_those_of_a_run_without(self):
        optim = self.real.optim
        for kind, options in (
            (optim.AdamW, {}),
            (optim.Adam, {"amsgrad": True}),
            (optim.SGD, {"momentum": 0.9}),
            (optim.RMSprop, {"momentum": 0.9}),
            (optim.Adafactor, {}),
        ):
            plain, spilled = self.optimizer(kind, **options), self.optimizer(kind, **options)
            self.step(spilled, 3 * MIB)
            plain.step()
            for _ in range(3):
                plain.step()
                spilled.step()
            for a, b in zip(self.values(plain), self.values(spilled)):
                self.assertTrue(self.real.equal(a, b), kind)

    def test_momentum_of_sgd_is_a_clone_and_goes_too(self):
        placing = self.step(self.optimizer(self.real.optim.SGD, momentum=0.9), 0)
        self.assertEqual(placing.spilled, 8 * MIB)

    def test_state_of_a_checkpoint_is_moved(self):
        first = self.optimizer(self.real.optim.AdamW)
        first.step()
        second = self.optimizer(self.real.optim.AdamW)
        second.load_state_dict(copy.deepcopy(first.state_dict()))
        with self.real.no_grad():
            for a, b in zip(self.values(first), second.param_groups[0]["params"]):
                b.copy_(a)
        from cufit_spill.placing import placing_class

        placing = placing_class(self.real)(self.torch, {0: 4 * MIB}, {0: None})
        moved = placing.move_rest(second)
        self.assertEqual(moved, 12 * MIB)
        first.step()
        second.step()
        for a, b in zip(self.values(first), self.values(second)):
            self.assertTrue(self.real.equal(a, b))

    def test_a_host_without_room_keeps_it_on_the_gpu(self):
        self.cuda.host = 0
        placing = self.step(self.optimizer(self.real.optim.AdamW), 0)
        self.assertEqual((placing.spilled, placing.failed), (0, 16 * MIB))

    def test_small_state_and_what_is_made_afterwards_stay(self):
        torch = self.real
        param = torch.nn.Parameter(torch.ones(1000))
        param.grad = torch.ones(1000)
        placing = self.step(torch.optim.AdamW([param]), 0)
        self.assertEqual(placing.spilled, 0)
        torch.zeros_like(torch.ones(1 << 20))
        self.assertEqual((placing.kept, placing.spilled), (0, 0))

    def test_the_fused_step_only_where_the_choice_was_left_to_torch(self):
        from cufit_spill.fused import put_back, use_fused

        optim = self.real.optim
        left = self.optimizer(optim.AdamW)
        self.assertTrue(use_fused(self.real, left))
        self.assertTrue(left.param_groups[0]["fused"])
        put_back(left)
        self.assertIsNone(left.param_groups[0]["fused"])
        for options in (
            {"foreach": True},
            {"foreach": False},
            {"fused": True},
            {"capturable": True},
        ):
            self.assertFalse(use_fused(self.real, self.optimizer(optim.AdamW, **options)), options)
        self.assertFalse(use_fused(self.real, self.optimizer(optim.SGD, momentum=0.9)))

        class Own(optim.AdamW):
            pass

        self.assertFalse(use_fused(self.real, self.optimizer(Own)))
        begun = self.optimizer(optim.AdamW)
        begun.step()
        self.assertFalse(use_fused(self.real, begun))

    def test_room_is_what_forward_and_backward_leave(self):
        from cufit_spill.budget import CUSHION, LEAST_WASTE, budget

        cuda = types.SimpleNamespace(
            mem_get_info=lambda device: (1000 * MIB, 8000 * MIB),
            memory_reserved=lambda device: 5000 * MIB,
            max_memory_allocated=lambda device: 4000 * MIB,
            max_memory_reserved=lambda device: 4400 * MIB,
            memory_allocated=lambda device: 3000 * MIB,
            empty_cache=lambda: None,
        )
        optimizer = self.optimizer(self.real.optim.AdamW)
        torch = types.SimpleNamespace(cuda=cuda)
        self.assertEqual(budget(torch, optimizer, 0), 1600 * MIB - CUSHION)
        # The step itself may need more: all that is there, and one copy of the parameters.
        cuda.memory_allocated = lambda device: 4500 * MIB
        self.assertEqual(budget(torch, optimizer, 0), int(6000 * MIB - 4508 * MIB * 1.1) - CUSHION)
        # What was seen in one step is not all that plain segments waste.
        cuda.memory_allocated = lambda device: 3000 * MIB
        cuda.max_memory_reserved = lambda device: 4000 * MIB
        for setting, kind in (("", "plain"), ("expandable_segments:True", "expandable")):
            os.environ["PYTORCH_CUDA_ALLOC_CONF"] = setting
            self.assertEqual(
                budget(torch, optimizer, 0),
                int(6000 * MIB - 4000 * MIB * LEAST_WASTE[kind] - CUSHION),
            )
        del os.environ["PYTORCH_CUDA_ALLOC_CONF"]
        cuda.mem_get_info = lambda device: (0, 8000 * MIB)
        cuda.memory_reserved = lambda device: 100 * MIB
        self.assertEqual(budget(torch, optimizer, 0), 0)


if __name__ == "__main__":
    if "CUFIT_SPILL_TEST" in os.environ:
        unittest.main(argv=sys.argv[:1])
    python = os.path.join(sys.argv[1], "torch", "bin", "python")
    if not os.path.exists(python):
        print("skipped: no PyTorch (tools/fetch-torch)")
        sys.exit(77)
    settings = {"CUFIT_SPILL_TEST": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([python, __file__], env={**os.environ, **settings})
    sys.exit(done.returncode)

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

        placing = placing_class(self.real)(self.torch, [0], {0: None}, set())
        placing.give_room({0: room})
        with placing:
            optimizer.step()
        placing.move_rest(optimizer)
        return placing

    # A Spiller whose first step leaves `room` for state. Its optimizers are of own_class().
    def spiller(self, room):
        from cufit_spill import spiller

        made = spiller.Spiller("fit", "")
        made.torch = self.torch
        made.placing_type = spiller.placing_class(self.real)
        made.cost = types.SimpleNamespace(before=lambda spilled: None, after=lambda begun: None)
        made.devices = lambda optimizer: [0]
        made.pool = lambda device: made.pools.setdefault(device, object())
        made.asked = 0

        def given(optimizer, devices):
            made.asked += 1
            return {0: room}

        made.room = given
        made.tell = lambda placing, fused: None
        self.cuda.is_current_stream_capturing = lambda: False
        saved = self.real.optim.Optimizer.profile_hook_step
        loading = self.real.optim.Optimizer.load_state_dict
        made.wrap(self.real.optim.Optimizer)
        self.addCleanup(setattr, self.real.optim.Optimizer, "load_state_dict", loading)
        self.addCleanup(
            setattr, self.real.optim.Optimizer, "profile_hook_step", staticmethod(saved)
        )
        return made

    def values(self, optimizer):
        return [param.detach().clone() for g in optimizer.param_groups for param in g["params"]]

    def own_class(self, base=None):
        base = base or self.real.optim.AdamW
        step = base.step.__wrapped__ if getattr(base.step, "hooked", False) else base.step
        return type("Own", (base,), {"step": step})

    def test_what_has_room_stays_and_the_rest_goes(self):
        for room, kept in ((0, 0), (5 * MIB, 4), (100 * MIB, 16)):
            placing = self.step(self.optimizer(self.real.optim.AdamW), room)
            self.assertEqual(placing.kept.get(0, 0), kept * MIB)
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

        placing = placing_class(self.real)(self.torch, [0], {0: None}, set())
        placing.give_room({0: 4 * MIB})
        placing.move_rest(second)
        self.assertEqual((placing.spilled, placing.kept[0]), (12 * MIB, 4 * MIB))
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
        self.assertEqual((placing.kept, placing.spilled), ({}, 0))

    def test_a_step_is_placed_once_and_new_parameters_again(self):
        made = self.spiller(0)
        optimizer = self.optimizer(self.own_class())
        optimizer.step()
        self.assertEqual(made.spilled, 16 * MIB)
        optimizer.step()
        self.assertEqual((made.spilled, made.asked), (16 * MIB, 1))
        more = self.optimizer(self.real.optim.SGD, count=1).param_groups[0]["params"]
        optimizer.add_param_group({"params": more})
        optimizer.step()
        self.assertEqual(made.spilled, 20 * MIB)

    # A layer that is frozen at first, or that a batch leaves out.
    def test_a_gradient_that_comes_later_is_placed_then(self):
        made = self.spiller(0)
        optimizer = self.optimizer(self.own_class(), foreach=False)
        late = optimizer.param_groups[0]["params"][2]
        late.grad = None
        for _ in range(2):
            optimizer.step()
        self.assertEqual((made.spilled, made.asked), (12 * MIB, 1))
        late.grad = self.real.full_like(late, 0.5)
        for _ in range(3):
            optimizer.step()
        self.assertEqual((made.spilled, made.asked), (16 * MIB, 2))

    def test_an_optimizer_without_state_is_looked_at_once(self):
        made = self.spiller(0)
        optimizer = self.optimizer(self.own_class(self.real.optim.SGD))
        for _ in range(3):
            optimizer.step()
        self.assertEqual((made.spilled, made.asked), (0, 1))

    # As Lightning does: what forward and backward make in a closure is no state.
    def test_a_closure_is_run_outside(self):
        made = self.spiller(0)
        optimizer = self.optimizer(self.own_class())
        seen = []

        def closure():
            seen.append((self.cuda.inside, made.asked))
            before = made.spilled
            self.real.zeros_like(self.real.ones(1 << 20))
            self.assertEqual(made.spilled, before)
            return self.real.tensor(1.0)

        self.assertEqual(float(optimizer.step(closure)), 1.0)
        self.assertEqual(seen, [(0, 0)])
        self.assertEqual((made.spilled, made.asked), (16 * MIB, 1))

    def test_a_step_that_fails_is_tried_again(self):
        made = self.spiller(0)
        optimizer = self.optimizer(self.own_class())
        optimizer.param_groups[0]["betas"] = None
        with self.assertRaises(TypeError), self.real.device("meta"):
            optimizer.step()
        self.assertEqual(self.real.ones(2).device.type, "cpu")
        self.assertEqual(self.real.zeros_like(self.real.ones(1 << 20)).numel(), 1 << 20)
        optimizer.param_groups[0]["betas"] = (0.9, 0.999)
        optimizer.step()
        self.assertEqual(made.spilled, 16 * MIB)

    # As under cudaMallocAsync. Here the library without a name has no function of the guard.
    def test_a_pool_that_cannot_be_made_is_said_once(self):
        from cufit_spill import spiller

        told = []
        made = self.spiller(0)
        del made.pool
        self.addCleanup(setattr, spiller, "say", spiller.say)
        spiller.say = lambda name, **values: told.append(name)
        optimizer = self.optimizer(self.own_class())
        for _ in range(3):
            optimizer.step()
        self.assertEqual((told, made.spilled), (["OFF"], 0))

    def test_a_checkpoint_goes_to_the_host_before_the_first_step_and_as_before_later(self):
        made = self.spiller(6 * MIB)
        kind = self.own_class()
        first, second = self.optimizer(kind), self.optimizer(kind)
        first.step()
        self.assertEqual(made.spilled, 10 * MIB)
        saved = copy.deepcopy(first.state_dict())
        second.load_state_dict(saved)
        self.assertEqual(made.spilled, 26 * MIB)
        first.load_state_dict(saved)
        self.assertEqual(made.spilled, 36 * MIB)
        first.step()
        self.assertEqual(made.asked, 1)

    def test_an_optimizer_is_not_kept_alive(self):
        import gc
        import weakref

        self.spiller(0)
        optimizer = self.optimizer(self.own_class())
        optimizer.step()
        watched = weakref.ref(optimizer)
        del optimizer
        gc.collect()
        self.assertIsNone(watched())

    def test_two_threads_with_an_optimizer_each(self):
        import threading

        made = self.spiller(0)
        kind = self.own_class()
        failures = []

        def train():
            try:
                optimizer = self.optimizer(kind)
                for _ in range(3):
                    optimizer.step()
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=train) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(made.spilled, 64 * MIB)

    def test_what_is_said_never_ends_the_program(self):
        from cufit_spill.messages import say

        for broken in (None, types.SimpleNamespace()):
            kept, sys.stderr = sys.stderr, broken
            try:
                say("ON", bytes=1)
            finally:
                sys.stderr = kept

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
        torch = types.SimpleNamespace(cuda=cuda, is_tensor=self.real.is_tensor)
        self.assertEqual(budget(torch, optimizer, 0), 1600 * MIB - CUSHION)
        # State that has its place is part of the peak and asks for none.
        placed, state = set(), self.real.zeros(8 * MIB // 4)
        optimizer.state[optimizer.param_groups[0]["params"][0]]["exp_avg"] = state
        self.assertEqual(budget(torch, optimizer, 0, placed), 1608 * MIB - CUSHION)
        placed.add(state.data_ptr())
        self.assertEqual(budget(torch, optimizer, 0, placed), 1600 * MIB - CUSHION)
        optimizer.state.clear()
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

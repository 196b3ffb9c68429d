# SPDX-License-Identifier: Apache-2.0
"""Runs at the start of every Python below `cufit fit`: lets a training program run on a machine
without a GPU, for a few steps and without its arithmetic, and writes what its tensors would have
asked of the CUDA caching allocator.

What is on the CPU stays real (data loaders, tokenizers, random crops); what goes to `cuda` becomes
a fake tensor: a shape, a type and a storage that holds nothing. Small tensors that began as real
data keep their values in a shadow on the CPU, so that a mask or a length can be read; any other
value that the program reads is made up, and the event file says where. Needs torch 2.4 or later,
built with CUDA or without, and nothing else."""

# SPDX-License-Identifier: Apache-2.0
"""In the place of DeepSpeed's: what compiles its kernels."""


class OpBuilder:
    def __init__(self, name):
        self.name = name

    def is_compatible(self, verbose=False):
        raise AssertionError("a compiler was asked")

    def load(self, verbose=True):
        raise AssertionError("a compiler was started")


class FusedAdamBuilder(OpBuilder):
    def is_compatible(self, verbose=False):
        raise AssertionError("a compiler was asked")

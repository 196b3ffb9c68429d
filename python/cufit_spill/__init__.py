# SPDX-License-Identifier: Apache-2.0
"""Runs at the start of every Python below `cufit run --spill optimizer`: puts the state of torch's
optimizers into host memory where the run would otherwise not fit."""

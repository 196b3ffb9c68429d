# SPDX-License-Identifier: Apache-2.0
"""What `cufit bench` runs in each environment: shipped workloads in plain torch, or a file of the
user's, block by block as cufit asks (src/host/python/bench_child.h)."""

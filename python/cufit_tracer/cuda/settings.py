# SPDX-License-Identifier: Apache-2.0
"""Settings of torch's backends."""


# torch 2.9 and later refuse the older question where the program has used the newer setting.
def asked_tf32(backend):
    try:
        return backend.allow_tf32
    except RuntimeError:
        return getattr(backend, "fp32_precision", "") == "tf32"

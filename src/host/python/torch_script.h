// SPDX-License-Identifier: Apache-2.0
// The Python program of the torch check. It multiplies matrices on every visible GPU and compares
// each with a float64 product of the same (already rounded) inputs on the CPU. Its last line is
// "cufit: ok" or "cufit: <what>".
//
// The bound of one element is |A||B| * g + |C| * u: g covers rounding inside the product, u that of
// storing it. float32 may legally run as TF32 (NVIDIA_TF32_OVERRIDE, allow_tf32), which rounds each
// input to 11 bits: 2 * 2^-11. bfloat16 (u = 2^-8) may add partial sums in bfloat16: a few
// roundings more. A broken kernel or chip is off by orders of magnitude, not by a factor.
#pragma once

namespace cufit::host {

constexpr const char* k_torch_without_cuda = "torch is built without CUDA";  // the script's words

constexpr const char* k_torch_script = R"py(
import sys

def check(torch):
    if torch.version.cuda is None and torch.version.hip is None:
        return 'torch is built without CUDA'
    if not torch.cuda.is_available():
        try:
            torch.zeros(1, device='cuda')
        except Exception as error:
            return 'torch.cuda.is_available() is False: ' + (str(error).strip().splitlines() or [''])[0]
        return 'torch.cuda.is_available() is False'
    generator = torch.Generator().manual_seed(20)
    a = torch.randn(257, 511, generator=generator)
    b = torch.randn(511, 129, generator=generator)
    for index in range(torch.cuda.device_count()):
        device = torch.device('cuda', index)
        types = [('float32', torch.float32, 2.0 ** -9, 2.0 ** -11)]
        if torch.cuda.get_device_capability(index) >= (8, 0):
            types.append(('bfloat16', torch.bfloat16, 2.0 ** -6, 2.0 ** -7))
        for name, kind, inner, stored in types:
            x, y = a.to(kind), b.to(kind)
            exact = x.double() @ y.double()
            got = (x.to(device) @ y.to(device)).cpu().double()
            bound = (x.double().abs() @ y.double().abs()) * inner + exact.abs() * stored
            wrong = int((~((got - exact).abs() <= bound)).sum())
            if wrong:
                return 'wrong result: %d of %d elements of a %s product on cuda:%d' % (wrong, exact.numel(), name, index)
    return 'ok'

try:
    import torch
    answer = check(torch)
except BaseException as error:
    lines = str(error).strip().splitlines()
    answer = type(error).__name__ + (': ' + lines[0] if lines else '')
sys.stdout.write('\ncufit: ' + answer + '\n')
sys.stdout.flush()
import os
os._exit(0)
)py";

}  // namespace cufit::host

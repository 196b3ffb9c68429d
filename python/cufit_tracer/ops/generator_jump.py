# SPDX-License-Identifier: Apache-2.0
"""Moves PyTorch's CPU generator ahead without drawing: a model of 7 billion parameters would take
20 seconds of draws.

The generator is the Mersenne Twister MT19937. Its words x[0], x[1], ... follow a linear recurrence
over GF(2) whose characteristic polynomial p has degree 19937. With r = t^n mod p the word x[k + n]
is the sum of those x[k + i] whose coefficient of t^i in r is 1 (Haramoto, Matsumoto, Nishimura,
Panneton, L'Ecuyer 2008). A polynomial is a whole number here: bit i is the coefficient of t^i.
"""

import functools

N, M, W, R = 624, 397, 32, 31  # words, middle word, bits of a word, lower bits
A = 0x9908B0DF
DEGREE = N * W - R
# Bytes with a 0 before each bit of their lower and of their upper half: a square over GF(2).
SPREAD = [sum((value >> bit & 1) << 2 * bit for bit in range(8)) for value in range(256)]
LOWER = bytes(spread & 255 for spread in SPREAD)
UPPER = bytes(spread >> 8 for spread in SPREAD)
# at::CPUGeneratorImplStateLegacy: seed, left (32 bits), seeded (32 bits), next, then the words, 64
# bits each.
LEFT, NEXT, WORDS, STATE_BYTES = 8, 16, 24, 5056


def times(a, b):
    out = 0
    while b:
        low = b & -b
        out ^= a * low  # a shift
        b ^= low
    return out


# Of the twister's matrix: u = t^N + t^M, v = t^(N-1) + t^(M-1). Each upper bit of a word is made of
# a word N - M behind, each lower bit of the one before that, and A adds one term for each bit.
@functools.lru_cache(maxsize=None)
def terms():
    u, v = 1 << N | 1 << M, 1 << N - 1 | 1 << M - 1
    us, vs = [1], [1]
    for _ in range(W - R):
        us.append(times(us[-1], u))
    for _ in range(R):
        vs.append(times(vs[-1], v))
    out = times(us[W - R], vs[R])
    for bit in range(R):
        if A >> bit & 1:
            out ^= times(us[W - R], vs[R - 1 - bit])
    for bit in range(R, W):
        if A >> bit & 1:
            out ^= times(us[W - 1 - bit], 1)
    return [at for at in range(DEGREE) if out >> at & 1]


def reduced(value):
    mask = (1 << DEGREE) - 1
    while value >> DEGREE:
        high, value = value >> DEGREE, value & mask
        for at in terms():
            value ^= high << at
    return value


def squared(value):
    data = value.to_bytes(DEGREE // 8 + 1, "little")
    out = bytearray(2 * len(data))
    out[0::2], out[1::2] = data.translate(LOWER), data.translate(UPPER)
    return reduced(int.from_bytes(out, "little"))


@functools.lru_cache(maxsize=64)
def power(count):
    out = 1
    for bit in bin(count)[2:]:
        out = squared(out)
        if bit == "1":
            out = reduced(out << 1)
    return out


def later_words(words, count):
    """Those that stand `count` words behind these, which have to come of the recurrence."""
    line = list(words)
    for k in range(DEGREE):
        upper, lower = line[k] & 0x80000000, line[k + 1] & 0x7FFFFFFF
        mixed = (upper | lower) >> 1
        line.append(line[k + M] ^ mixed ^ (A if lower & 1 else 0))
    line = int.from_bytes(b"".join(word.to_bytes(4, "little") for word in line), "little")
    mask, out, left = (1 << W * N) - 1, 0, power(count)
    while left:
        low = left & -left
        at = low.bit_length() - 1
        out ^= line >> W * at & mask
        left ^= low
    data = out.to_bytes(4 * N, "little")
    return [int.from_bytes(data[at : at + 4], "little") for at in range(0, 4 * N, 4)]


def jump(torch, count):
    """As `count` draws of 32 bits, at least 2 N of them."""
    generator = torch.default_generator
    if len(generator.get_state()) != STATE_BYTES:  # of a torch that keeps it in another way
        for at in range(0, count, 1 << 24):
            torch.empty(min(count - at, 1 << 24), dtype=torch.uint8, device="cpu").random_()
        return
    # The words of a seed alone do not follow the recurrence.
    torch.empty(N, dtype=torch.uint8, device="cpu").random_()
    count -= N
    data = bytearray(generator.get_state().tolist())

    def number(at, size):
        return int.from_bytes(data[at : at + size], "little")

    used = N + 1 - number(LEFT, 4) + count
    blocks = (used - 1) // N
    words = [number(WORDS + 8 * i, 4) for i in range(N)]
    for i, word in enumerate(later_words(words, blocks * N)):
        data[WORDS + 8 * i : WORDS + 8 * i + 8] = word.to_bytes(8, "little")
    used -= blocks * N
    data[LEFT : LEFT + 4] = (N + 1 - used).to_bytes(4, "little")
    data[NEXT : NEXT + 8] = used.to_bytes(8, "little")
    generator.set_state(torch.tensor(list(data), dtype=torch.uint8, device="cpu"))

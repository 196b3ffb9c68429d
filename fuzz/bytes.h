// SPDX-License-Identifier: Apache-2.0
// The bytes of a fuzzer as numbers and addresses.
#pragma once

#include <cstddef>
#include <cstdint>

struct Bytes {
  const uint8_t* data;
  size_t size;
  uint8_t take() {
    if (size == 0) return 0;
    --size;
    return *data++;
  }
  uint64_t any() {
    uint64_t number = 0;
    for (int i = 0; i < 8; ++i) number = number << 8 | take();
    return number;
  }
  // Near a multiple of 2 MiB, so that ranges meet; now and then anything.
  uint64_t place() {
    const uint64_t mib2 = take();
    return mib2 == 255 ? any() : (mib2 << 21) + uint64_t{512} * (take() % 16);
  }
  // One of few, so that blocks live and die; now and then anything.
  uint64_t near_place() {
    const uint64_t mib2 = take();
    return mib2 == 255 ? any() : ((mib2 % 32) << 21) + uint64_t{512} * (mib2 / 32);
  }
};

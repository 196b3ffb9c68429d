/* SPDX-License-Identifier: Apache-2.0
 * A program of the real CUDA runtime, linked to it shared or static. It gets as far as the runtime goes with a driver that is
 * none: all look-ups, cuInit, the devices' properties; then the runtime checks who the driver is. */
#include <cuda_runtime_api.h>
#include <stdio.h>

int main(void) {
  void* at = 0;
  printf("cudaMalloc: %d\n", (int)cudaMalloc(&at, 1 << 20));
  return 0;
}

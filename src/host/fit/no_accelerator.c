/* SPDX-License-Identifier: Apache-2.0
 * Loaded before torch by the tracer of `cufit fit`: torch is told that there is no accelerator, so that its autograd engine
 * does not look for the streams and contexts of a GPU that is not there. Names as g++ writes them:
 *   std::optional<c10::DeviceType> at::accelerator::getAccelerator(bool)   torch 2.9 and later
 *   std::optional<c10::DeviceType> at::getAccelerator(bool)                before
 *   bool at::accelerator::isAccelerator(c10::DeviceType)
 * An optional of one byte is two bytes, the second says whether there is a value. Without a library of its own: it is made
 * when cufit is built and travels inside the program. */
#include <stdint.h>

uint16_t _ZN2at11accelerator14getAcceleratorEb(_Bool checked) {
  (void)checked;
  return 0;
}

uint16_t _ZN2at14getAcceleratorEb(_Bool checked) {
  (void)checked;
  return 0;
}

_Bool _ZN2at11accelerator13isAcceleratorEN3c1010DeviceTypeE(signed char type) {
  (void)type;
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 * Loaded before torch by the tracer of `cufit fit`: torch is told that there is no accelerator, so that its autograd engine
 * does not look for the streams and contexts of a GPU that is not there. Names as g++ writes them:
 *   std::optional<c10::DeviceType> at::accelerator::getAccelerator(bool)   torch 2.9 and later
 *   std::optional<c10::DeviceType> at::getAccelerator(bool)                before
 *   bool at::accelerator::isAccelerator(c10::DeviceType)
 * An optional of one byte is two bytes, the second says whether there is a value. Who asks with `checked` needs one and takes it
 * for what a bare number means (`model.cuda(0)`, `.to(rank)`): that is told cuda. Without a library of its own: it is made when
 * cufit is built and travels inside the program. */
#include <stdint.h>

static uint16_t accelerator(_Bool checked) {
  const uint16_t cuda = 1, present = 0x100;
  return checked ? cuda | present : 0;
}

uint16_t _ZN2at11accelerator14getAcceleratorEb(_Bool checked) { return accelerator(checked); }

uint16_t _ZN2at14getAcceleratorEb(_Bool checked) { return accelerator(checked); }

_Bool _ZN2at11accelerator13isAcceleratorEN3c1010DeviceTypeE(signed char type) {
  (void)type;
  return 0;
}

/* A device guard (c10::impl::DeviceGuardImplInterface) for torch before 2.6, which has none of its own that asks no driver: an
 * object whose virtual functions are all one. What it returns is, as the type asks: cuda (1); cuda:0 in two bytes; one device;
 * the default stream of cuda:0 in two registers; true. */
struct answer {
  uint64_t first, second;
};

static struct answer always(void) {
  struct answer one = {1, 0};
  return one;
}

/* One that says it counts no devices: torch 2.6 and later put their own in its place (ensureCUDADeviceGuardSet). */
static struct answer never(void) {
  struct answer none = {0, 0};
  return none;
}

#define EIGHT(f) f, f, f, f, f, f, f, f
typedef struct answer (*function)(void);
static const function k_always[] = {EIGHT(always), EIGHT(always), EIGHT(always), EIGHT(always), EIGHT(always), EIGHT(always)};
static const function k_never[] = {EIGHT(never), EIGHT(never), EIGHT(never), EIGHT(never), EIGHT(never), EIGHT(never)};
const function* const cufit_guard_always = k_always;
const function* const cufit_guard_never = k_never;

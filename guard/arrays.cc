// SPDX-License-Identifier: Apache-2.0
// CUDA arrays (textures). Their layout is the driver's; what it tells of (cuArrayGetMemoryRequirements) is charged, else
// the elements rounded up to its pages. Sparse and deferred ones have no memory until cuMemMapArrayAsync gives them
// some of cuMemCreate's, which is charged there.
#include "hook.h"

namespace guard {
namespace {

uint64_t element_bytes(unsigned format) {
  switch (format) {
    case 0x02:  // 16 bits: CU_AD_FORMAT_UNSIGNED_INT16, SIGNED_INT16, HALF
    case 0x09:
    case 0x10:
      return 2;
    case 0x03:  // 32 bits: UNSIGNED_INT32, SIGNED_INT32, FLOAT
    case 0x0a:
    case 0x20:
      return 4;
    case 0x01:
    case 0x08:
      return 1;
    default:
      return format >= 0xc3 && format <= 0xc8 && format % 3 == 0 ? 2 : 1;
  }
}

uint64_t times(uint64_t a, uint64_t b) { return b && a > UINT64_MAX / b ? UINT64_MAX : a * b; }

uint64_t estimate(const Array3DShape& shape, unsigned levels) {
  if (shape.flags & (k_array_sparse | k_array_deferred)) return 0;
  uint64_t bytes = times(shape.width ? shape.width : 1,
                         element_bytes(shape.format) * (shape.channels ? shape.channels : 1));
  bytes = times(times(bytes, shape.height ? shape.height : 1), shape.depth ? shape.depth : 1);
  // A pyramid of halves: at most a third more in two dimensions, twice in one.
  if (levels > 1) bytes = times(bytes, 2);
  return bytes;
}

template <class Needs, class Ask>
Result create(const Call& call, Handle* out, const Array3DShape& shape, unsigned levels,
              Needs needs, Ask ask) {
  Device device = current_device();
  uint64_t bytes = estimate(shape, levels);
  if (!call.all() || device < 0 || !out || bytes == 0) return ask();
  State& all = *call.all();
  Charge charge(all, device, CUFIT_RING_KIND_ARRAY, bytes, call.caller());
  if (!charge.take_block(bytes)) return k_out_of_memory;
  Result result = ask();
  if (result != k_ok) {
    charge.driver_refused(result);
    return result;
  }
  ArrayNeeds told{};
  if (needs && needs(&told, *out, device) == k_ok && told.bytes)
    charge.correct(round_up(told.bytes, k_page));
  all.arrays.insert(charge.keep(reinterpret_cast<uint64_t>(*out), current_context()));
  return result;
}

template <class Ask>
Result destroy(const Call& call, Handle array, Ask ask) {
  Entry entry;
  if (!call.all() || !call.all()->arrays.take(reinterpret_cast<uint64_t>(array), &entry))
    return ask();
  Result result = ask();
  if (result == k_ok)
    release(*call.all(), entry, call.caller());
  else
    call.all()->arrays.insert(entry);
  return result;
}

}  // namespace
}  // namespace guard

using namespace guard;

GUARD_EXPORT Result cuArrayCreate_v2(Handle* out, const ArrayShape* shape) {
  GUARD_BEGIN(cuArrayCreate_v2, Result(Handle*, const ArrayShape*));
  if (!shape) return real(out, shape);
  Array3DShape whole{shape->width, shape->height, 0, shape->format, shape->channels, 0};
  return create(call, out, whole, 1, driver().array_needs, [=] { return real(out, shape); });
}

GUARD_EXPORT Result cuArray3DCreate_v2(Handle* out, const Array3DShape* shape) {
  GUARD_BEGIN(cuArray3DCreate_v2, Result(Handle*, const Array3DShape*));
  if (!shape) return real(out, shape);
  return create(call, out, *shape, 1, driver().array_needs, [=] { return real(out, shape); });
}

GUARD_EXPORT Result cuMipmappedArrayCreate(Handle* out, const Array3DShape* shape,
                                           unsigned levels) {
  GUARD_BEGIN(cuMipmappedArrayCreate, Result(Handle*, const Array3DShape*, unsigned));
  if (!shape) return real(out, shape, levels);
  return create(call, out, *shape, levels, driver().mipmap_needs,
                [=] { return real(out, shape, levels); });
}

GUARD_EXPORT Result cuArrayDestroy(Handle array) {
  GUARD_BEGIN(cuArrayDestroy, Result(Handle));
  return destroy(call, array, [=] { return real(array); });
}

GUARD_EXPORT Result cuMipmappedArrayDestroy(Handle array) {
  GUARD_BEGIN(cuMipmappedArrayDestroy, Result(Handle));
  return destroy(call, array, [=] { return real(array); });
}

// SPDX-License-Identifier: Apache-2.0
// The kernels that the compute check and the memory test run, as PTX that every driver compiles
// itself. PTX 4.0 for sm_30 is what drivers from CUDA 6 on know and what ptxas of CUDA 13.0 still
// compiles for sm_75 to sm_121. Nothing but integer arithmetic: the result is exact, so one wrong
// bit counts.
#pragma once

#include <cstdint>

namespace cufit::host {

// out[i] = in[i] * 1664525 + 1013904223 ^ i, for i < count. A linear congruential step: every bit
// of the input reaches the output.
constexpr const char* k_check_ptx = R"ptx(
.version 4.0
.target sm_30
.address_size 64
.visible .entry cufit_check(.param .u64 p_in, .param .u64 p_out, .param .u32 p_count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .b64 %d<6>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  ld.param.u32 %r5, [p_count];
  setp.ge.u32 %p1, %r4, %r5;
  @%p1 bra DONE;
  ld.param.u64 %d1, [p_in];
  ld.param.u64 %d2, [p_out];
  cvta.to.global.u64 %d1, %d1;
  cvta.to.global.u64 %d2, %d2;
  mul.wide.u32 %d3, %r4, 4;
  add.u64 %d4, %d1, %d3;
  add.u64 %d5, %d2, %d3;
  ld.global.u32 %r6, [%d4];
  mad.lo.u32 %r7, %r6, 1664525, 1013904223;
  xor.b32 %r8, %r7, %r4;
  st.global.u32 [%d5], %r8;
DONE:
  ret;
}
)ptx";

constexpr uint32_t check_result(uint32_t value, uint32_t index) {
  return (value * 1664525u + 1013904223u) ^ index;
}

// Word i of a chunk gets (first + i) * 0x9E3779B97F4A7C15 ^ flip: depends on the address, so lines
// that are stuck or swapped show, and with flip = all ones in the second pass every bit holds both
// values. cufit_verify keeps the lowest wrong word number of the chunk in *p_bad. volatile: the
// words must come from memory as far as PTX can say.
constexpr const char* k_memory_ptx = R"ptx(
.version 4.0
.target sm_30
.address_size 64
.visible .entry cufit_fill(.param .u64 p_data, .param .u64 p_words, .param .u64 p_first, .param .u64 p_flip)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %d<12>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mul.wide.u32 %d1, %r1, %r2;
  cvt.u64.u32 %d2, %r3;
  add.u64 %d1, %d1, %d2;
  mul.wide.u32 %d2, %r4, %r2;
  ld.param.u64 %d3, [p_data];
  cvta.to.global.u64 %d3, %d3;
  ld.param.u64 %d4, [p_words];
  ld.param.u64 %d5, [p_first];
  ld.param.u64 %d6, [p_flip];
NEXT:
  setp.ge.u64 %p1, %d1, %d4;
  @%p1 bra DONE;
  add.u64 %d7, %d1, %d5;
  mul.lo.u64 %d8, %d7, 0x9E3779B97F4A7C15;
  xor.b64 %d8, %d8, %d6;
  shl.b64 %d9, %d1, 3;
  add.u64 %d10, %d3, %d9;
  st.global.u64 [%d10], %d8;
  add.u64 %d1, %d1, %d2;
  bra NEXT;
DONE:
  ret;
}
.visible .entry cufit_verify(.param .u64 p_data, .param .u64 p_words, .param .u64 p_first, .param .u64 p_flip,
                             .param .u64 p_bad)
{
  .reg .pred %p<3>;
  .reg .b32 %r<7>;
  .reg .b64 %d<14>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mul.wide.u32 %d1, %r1, %r2;
  cvt.u64.u32 %d2, %r3;
  add.u64 %d1, %d1, %d2;
  mul.wide.u32 %d2, %r4, %r2;
  ld.param.u64 %d3, [p_data];
  cvta.to.global.u64 %d3, %d3;
  ld.param.u64 %d4, [p_words];
  ld.param.u64 %d5, [p_first];
  ld.param.u64 %d6, [p_flip];
  ld.param.u64 %d11, [p_bad];
  cvta.to.global.u64 %d11, %d11;
NEXT:
  setp.ge.u64 %p1, %d1, %d4;
  @%p1 bra DONE;
  add.u64 %d7, %d1, %d5;
  mul.lo.u64 %d8, %d7, 0x9E3779B97F4A7C15;
  xor.b64 %d8, %d8, %d6;
  shl.b64 %d9, %d1, 3;
  add.u64 %d10, %d3, %d9;
  ld.volatile.global.u64 %d12, [%d10];
  setp.eq.u64 %p2, %d12, %d8;
  @%p2 bra SAME;
  cvt.u32.u64 %r5, %d1;
  atom.global.min.u32 %r6, [%d11], %r5;
SAME:
  add.u64 %d1, %d1, %d2;
  bra NEXT;
DONE:
  ret;
}
)ptx";

}  // namespace cufit::host

// SPDX-License-Identifier: Apache-2.0
// What a driver child tells its parent while it works, as frames on a pipe. Before every call into
// the driver the child sends what it learned so far and the name of the call, so that a child that
// hangs or dies inside a call leaves everything that came before and the name of the culprit.
//
// Not JSON: the state goes out before each of some 400 calls on an 8-GPU machine, and both ends are
// one program (fork), so the order of facts_fields.h is format enough. The bytes are still read as
// hostile: a driver that corrupts the child's memory must not take the parent with it.
//
// Frame: u32 size of what follows, u8 kind, u32 index, payload. All little-endian.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "facts/facts.h"

namespace cufit::host {

enum class FrameKind : uint8_t {
  call = 'C',      // payload: name of the driver function that is called next
  nvml = 'N',      // NvmlFacts without gpus; index = number of GPUs
  gpu = 'G',       // one NvmlGpu; index = its place
  cuda = 'U',      // CudaFacts without devices; index = number of devices
  device = 'D',    // one CudaDevice
  progress = 'P',  // payload: u64 done, u64 total, text
  end = 'E',       // the child has said everything
};

// What the parent has put together from the frames.
struct ChildAnswers {
  facts::NvmlFacts nvml;
  facts::CudaFacts cuda;
  std::string call;       // the last call that was begun; empty = none
  bool finished = false;  // the end frame came
  std::string damage;     // why the stream could not be read further; empty = it could
  uint64_t progress_done = 0, progress_total = 0;
  std::string progress_what;
  uint32_t progress_frames = 0;
};

// Encoders append one whole frame to `out`.
void put_call(std::string& out, std::string_view name);
void put_nvml(std::string& out, const facts::NvmlFacts& nvml);
void put_gpu(std::string& out, uint32_t place, const facts::NvmlGpu& gpu);
void put_cuda(std::string& out, const facts::CudaFacts& cuda);
void put_device(std::string& out, uint32_t place, const facts::CudaDevice& device);
void put_progress(std::string& out, std::string_view what, uint64_t done, uint64_t total);
void put_end(std::string& out);

// Takes the whole frames at the front of `bytes` into `answers`; returns how many bytes were used.
// After a damaged frame `answers.damage` is set and nothing more is used.
size_t take_frames(std::string_view bytes, ChildAnswers& answers);

// Every fact of the child's answers that was never reached becomes missing for this reason.
void mark_unreached(facts::NvmlFacts& nvml, WhyNot why, const std::string& tried,
                    const std::string& note);
void mark_unreached(facts::CudaFacts& cuda, WhyNot why, const std::string& tried,
                    const std::string& note);

}  // namespace cufit::host

// SPDX-License-Identifier: Apache-2.0
// A recording of samples (`cufit top --record`): a line {"schema":"cufit.samples/1"}, then a line of JSON for each sample
// (facts/gpu_sample_json.h). It grows while it is written: what a crash leaves is read as far as it is whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/gpu_sample.h"
#include "facts/redact_sample.h"
#include "host/files/host.h"
#include "host/process/spawn.h"

namespace cufit::host {

constexpr uint64_t k_most_recorded_bytes = uint64_t{512} << 20;

class SampleFile {
 public:
  // Error{io}, Error{no_permission} name the file. What was there is replaced.
  static Result<SampleFile> create(const std::string& path);
  // Redacted.
  Result<void> add(const facts::GpuSample& sample);
  uint64_t samples() const { return samples_; }

 private:
  explicit SampleFile(std::string path, int file) : path_(std::move(path)), file_(file) {}
  Result<void> write_line(const std::string& line);

  std::string path_;
  FileHandle file_;
  facts::SampleRedactor redactor_;
  uint64_t samples_ = 0;
};

// Error{malformed} names file and line; a last line without its end is left out.
Result<std::vector<facts::GpuSample>> read_samples(const Host& host, const std::string& path);

}  // namespace cufit::host

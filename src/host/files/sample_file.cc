// SPDX-License-Identifier: Apache-2.0
#include "host/files/sample_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "base/json.h"
#include "facts/gpu_sample_json.h"
#include "host/files/atomic_write.h"

namespace cufit::host {
namespace {

const std::string k_head = R"({"schema":"cufit.samples/1"})";

Error io_error(const std::string& path, int number) {
  return fail(number == EACCES || number == EPERM ? Code::no_permission : Code::io,
              format("`{}`: {}", path, std::strerror(number)));
}

}  // namespace

Result<SampleFile> SampleFile::create(const std::string& path) {
  if (is_planted_link(path)) return io_error(path, ELOOP);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return io_error(path, errno);
  SampleFile out(path, file);
  if (Result<void> written = out.write_line(k_head); !written) return written.error();
  return out;
}

Result<void> SampleFile::write_line(const std::string& line) {
  const std::string text = line + "\n";
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(file_.get(), text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return io_error(path_, count < 0 ? errno : EIO);
    written += static_cast<size_t>(count);
  }
  return {};
}

Result<void> SampleFile::add(const facts::GpuSample& sample) {
  facts::GpuSample shown = sample;
  redactor_.redact(shown);
  if (Result<void> written = write_line(facts::sample_to_json(shown)); !written)
    return written.error();
  ++samples_;
  return {};
}

Result<std::vector<facts::GpuSample>> read_samples(const Host& host, const std::string& path) {
  CUFIT_TRY(text, host.read_file(path, k_most_recorded_bytes));
  std::vector<facts::GpuSample> out;
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::string_view line = std::string_view(text).substr(at, end - at);
    ++number;
    if (number == 1) {
      const std::optional<Json> head = Json::parse(line);
      if (!head || head->text_at("schema") != "cufit.samples/1")
        return fail(Code::malformed, format("`{}`: no recording of `cufit top --record`", path));
    } else if (end == std::string::npos) {
      break;  // its writer was ended in the midst of it
    } else {
      Result<facts::GpuSample> sample = facts::sample_from_json(line);
      if (!sample)
        return fail(Code::malformed,
                    format("`{}`, line {}: {}", path, number, sample.error().what));
      out.push_back(std::move(*sample));
    }
    if (end == std::string::npos) break;
    at = end + 1;
  }
  if (out.empty()) return fail(Code::malformed, format("`{}`: no sample in it", path));
  return out;
}

}  // namespace cufit::host

// SPDX-License-Identifier: Apache-2.0
#include "host/files/spooled_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/format.h"
#include "host/files/text_stream.h"

namespace cufit::host {
namespace {

bool is_pipe(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
}

class Spool {
 public:
  explicit Spool(std::string folder) : folder_(std::move(folder)) {
    std::string name = folder_ + "/cufit-input.XXXXXX";
    number_ = ::mkostemp(name.data(), O_CLOEXEC);
    if (number_ >= 0) ::unlink(name.c_str());
    if (number_ < 0) error_ = errno;
  }
  ~Spool() {
    if (number_ >= 0) ::close(number_);
  }
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  void write(std::string_view bytes) {
    while (error_ == 0 && !bytes.empty()) {
      const ssize_t done = ::write(number_, bytes.data(), bytes.size());
      if (done < 0 && errno != EINTR) error_ = errno;
      if (done > 0) bytes.remove_prefix(static_cast<size_t>(done));
    }
  }
  std::string path() const { return format("/proc/self/fd/{}", number_); }
  bool failed() const { return error_ != 0; }
  Error error(const std::string& input) const {
    return fail(Code::io, format("{} cannot be kept in `{}`: {} (TMPDIR names another folder)",
                                 input, folder_, std::generic_category().message(error_)));
  }

 private:
  std::string folder_;
  int number_ = -1, error_ = 0;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_input(const Host& host, const std::string& path) {
  if (path != "-" && !is_pipe(path)) return host.open(path);
  const std::string input = path == "-" ? "standard input" : "`" + path + "`";
  const auto folder = host.variable("TMPDIR");
  Spool spool(folder && !folder->empty() ? *folder : "/tmp");
  if (spool.failed()) return spool.error(input);
  const Result<void> done =
      read_stream(path, [&](std::string_view piece, uint64_t, uint64_t) { spool.write(piece); });
  if (!done) return Error(done.error());
  if (spool.failed()) return spool.error(input);
  return host.open(spool.path());
}

}  // namespace cufit::host

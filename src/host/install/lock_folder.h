// SPDX-License-Identifier: Apache-2.0
// The folder of a cufit.lock, whose files take effect together: new ones are written whole into
// `.cufit.lock.partial` first, each old one is moved there before its place is taken, and cufit.lock
// comes last. Whoever reads the folder in between, or after a crash, finds in there what the
// cufit.lock that is in force names.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "host/files/host.h"

namespace cufit::host {

struct LockedFile {
  std::string name;  // in the folder: "pylock.cu128.toml"
  std::string bytes;
};
struct LockedSum {
  std::string name, sha256;
};

// Held while a lock is made (alone) or looked at by an installer (with others); the kernel frees it
// when the process ends, however it ends.
class LockFolder {
 public:
  enum class Hold { alone, shared };
  // Error{io} says that another cufit is at work there. A filesystem that knows no locks has none.
  static Result<LockFolder> take(const std::string& folder, Hold hold);
  LockFolder(LockFolder&& other) noexcept;
  LockFolder& operator=(LockFolder&&) = delete;
  ~LockFolder();

  // After an interrupted run: what the cufit.lock in force names (`sums`) comes back, the rest
  // goes. Only while it is held alone.
  void recover(const std::vector<LockedSum>& sums) const;
  // All of them, `index` last, and then without `obsolete`; on an error, all is as it was.
  Result<void> put(const std::vector<LockedFile>& files, const LockedFile& index,
                   const std::vector<std::string>& obsolete) const;

 private:
  LockFolder(std::string folder, int file) : folder_(std::move(folder)), file_(file) {}
  std::string folder_;
  int file_;
  bool held_ = false;
};

// take() and recover() where an interrupted run left something there; nothing else is touched.
Result<void> recover_lock_folder(const std::string& folder, const std::vector<LockedSum>& sums);

// A file that cufit.lock names, also where an interrupted run has moved it aside. The one in its
// place where neither has the sum.
Result<std::string> read_locked(const Host& host, const std::string& folder,
                                const LockedSum& wanted, size_t most_bytes);

}  // namespace cufit::host

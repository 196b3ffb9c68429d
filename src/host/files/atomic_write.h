// SPDX-License-Identifier: Apache-2.0
// The one way in which cufit writes a file: beside it, then renamed, so that a full disk or a crash
// leaves what was there. Results that a user names follow links and go to pipes as well.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cufit::host {

struct ReplaceOptions {
  std::optional<uint32_t> mode;  // absent: as a new file has it, 0666 without the umask's bits
  bool sync = false;             // on the disk before it takes the old one's place
};
// 0, or the errno of what failed; what was there before is untouched then.
int replace_file(const std::string& path, std::string_view bytes,
                 const ReplaceOptions& options = {});

// Why no file of this name can be made, as an errno; 0 = it can.
int writing_fails(const std::string& path);

// A link of another user in a folder that everybody may write to: it is not followed.
bool is_planted_link(const std::string& path);

// For a result that a user named. What is there is replaced and its mode kept, unless it may not be
// written; links are followed; a pipe or device is written directly.
Result<void> write_whole_file(const std::string& path, std::string_view bytes);

// For cufit's own files, which must survive a crash. Error{io} or Error{no_permission} names the
// file.
Result<void> write_synced(const std::string& path, std::string_view bytes);

void remove_file(const std::string& path);          // whether or not it is there
void remove_empty_folder(const std::string& path);  // one that holds anything stays
bool may_run(const std::string& path);              // it is there and may be executed

}  // namespace cufit::host

// SPDX-License-Identifier: Apache-2.0
#include "commands/size_argument.h"

#include "base/format.h"
#include "base/memory_size.h"

namespace cufit::commands {

Result<uint64_t> size_argument(const std::string& option, const std::string& text) {
  if (const std::optional<uint64_t> bytes = parse_memory_size(text)) return *bytes;
  return fail(Code::usage, format("`{} {}`: a size in GiB such as 22.5, or 800MiB", option, text));
}

}  // namespace cufit::commands

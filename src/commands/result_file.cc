// SPDX-License-Identifier: Apache-2.0
#include "commands/result_file.h"

#include "base/format.h"
#include "host/files/paths.h"

namespace cufit::commands {

Result<void> not_the_input(const std::optional<std::string>& result,
                           const std::optional<std::string>& input) {
  if (!result || !input || !host::is_file(*result) || !host::is_file(*input)) return {};
  if (!host::same_entry(*result, *input)) return {};
  return fail(Code::usage, format("`{}` is what is read: give the result another name", *result));
}

}  // namespace cufit::commands

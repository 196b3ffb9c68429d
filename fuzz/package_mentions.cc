// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "formats/prose/package_mentions.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit::formats;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const PackageMentions out = parse_package_mentions(plain_text_lines(text));
  CUFIT_CHECK(out.mentions.size() <= 1000 && out.commands.size() <= 210,
              "the reader bounds what it keeps");
  for (const PackageMention& one : out.mentions) {
    const bool module = one.kind == MentionKind::module || one.kind == MentionKind::file ||
                        one.kind == MentionKind::frame || one.kind == MentionKind::wheel;
    CUFIT_CHECK(module || is_distribution_name(one.name), "names may stand in commands");
    CUFIT_CHECK(one.version.find_first_of(" ;&|$`'\"<>()*!+") == one.version.npos,
                "versions may stand in commands");
  }
  return 0;
}

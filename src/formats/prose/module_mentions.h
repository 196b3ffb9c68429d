// SPDX-License-Identifier: Apache-2.0
// Which modules a failed import, a compiled file that does not load and a traceback name. Part of
// parse_package_mentions().
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/prose/package_mentions.h"
#include "formats/prose/text_words.h"

namespace cufit::formats {

// Behind `phrase` (lower case), wherever it stands. npos = nowhere.
inline size_t behind(std::string_view text, std::string_view phrase) {
  const size_t at = find_word(text, phrase, 0, false);
  return at == text.npos ? at : at + phrase.size();
}

std::vector<std::string_view> path_parts(std::string_view path);  // "/" and "\", at most 64
size_t path_end(std::string_view text, size_t begin);             // of the path at `begin`

// What stands in `text` behind each `folder` of a path ("site-packages"), as path.
template <class Use>
void each_path_below(std::string_view text, std::string_view folder, Use use) {
  for (size_t at = text.find(folder); at != text.npos; at = text.find(folder, at + 1)) {
    const size_t begin = at + folder.size();
    use(text.substr(begin, path_end(text, begin) - begin));
  }
}

void add_mention(PackageMentions& out, PackageMention mention);  // up to the limit, none unnamed

class ModuleReader {
 public:
  explicit ModuleReader(PackageMentions& out) : out_(out) {}
  void take(std::string_view line, uint64_t number);

 private:
  void add(MentionKind kind, std::string_view name, bool folder = false);
  void import(std::string_view text);
  void compiled_file(std::string_view path);
  void traceback(std::string_view text);
  void code(std::string_view text);

  PackageMentions& out_;
  uint64_t number_ = 0;
  bool frame_line_ = false;
};

}  // namespace cufit::formats

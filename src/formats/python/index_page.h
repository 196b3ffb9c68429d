// SPDX-License-Identifier: Apache-2.0
// One project's page of a package index in the simple API's JSON form (PEP 691, sizes and versions
// by PEP 700). Pages come from servers that cufit does not know: limits everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace cufit::formats {

struct IndexFile {
  std::string filename;  // "torch-2.7.1-cp311-cp311-manylinux_2_28_x86_64.whl"
  std::string url;       // as written; may be relative to the page
  std::string requires_python, upload_time;
  std::optional<uint64_t> size;  // PEP 700
  std::vector<std::pair<std::string, std::string>> hashes;
  bool yanked = false;
  bool has_metadata = false;  // its METADATA lies beside it as URL.metadata (PEP 658, 714)
};

// Where the file lies: `file` may count from the page. Without a fragment.
std::string file_url(std::string_view page_url, const IndexFile& file);

struct IndexPage {
  std::string name;         // normalised
  std::string api_version;  // "1.1"
  std::vector<IndexFile> files;
  uint64_t skipped = 0;  // entries without a file name or url
};

// Error{malformed} "WHERE: what", Error{unsupported} for another major of the API. At most 100 000
// files.
Result<IndexPage> parse_index_page(std::string_view json, const std::string& where);

}  // namespace cufit::formats

// SPDX-License-Identifier: Apache-2.0
#include "formats/python/index_page.h"

#include <algorithm>

#include "base/format.h"
#include "base/json.h"
#include "base/path.h"
#include "formats/prose/printable.h"
#include "formats/python/python_metadata.h"

namespace cufit::formats {
namespace {

constexpr size_t k_index_page_most_files = 100'000, k_index_page_longest = 4096;

std::string page_text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return {};
  return printable(found->text(), k_index_page_longest);
}

IndexFile file_of(const Json& entry) {
  IndexFile out;
  out.filename = page_text_at(entry, "filename");
  out.url = page_text_at(entry, "url");
  out.requires_python = page_text_at(entry, "requires-python");
  out.upload_time = page_text_at(entry, "upload-time");
  if (const auto size = entry.find("size"); size != entry.end() && size->is_number_unsigned())
    out.size = size->natural();
  // false, true, or the reason as a text, which may be empty
  if (const auto yanked = entry.find("yanked"); yanked != entry.end())
    out.yanked = yanked->is_string() || (yanked->is_boolean() && yanked->boolean());
  for (const char* key : {"core-metadata", "dist-info-metadata", "data-dist-info-metadata"})
    if (const auto found = entry.find(key); found != entry.end())
      out.has_metadata =
          out.has_metadata || found->is_object() || (found->is_boolean() && found->boolean());
  if (const auto hashes = entry.find("hashes"); hashes != entry.end() && hashes->is_object())
    for (auto each = hashes->begin(); each != hashes->end() && out.hashes.size() < 16; ++each)
      if (each->is_string())
        out.hashes.emplace_back(printable(each.key(), 64), printable(each->text(), 256));
  return out;
}

}  // namespace

std::string file_url(std::string_view page_url, const IndexFile& file) {
  const std::string url = file.url.substr(0, file.url.find('#'));
  if (contains(url, "://")) return url;
  const size_t scheme = page_url.find("://");
  if (scheme == std::string_view::npos) return url;
  if (starts_with(url, "//")) return std::string(page_url.substr(0, scheme + 1)) + url;
  const size_t root = std::min(page_url.find('/', scheme + 3), page_url.size());
  const std::string host(page_url.substr(0, root));
  if (starts_with(url, "/")) return host + url;
  const std::string_view path = page_url.substr(root);
  const std::string folder(path.substr(0, path.rfind('/') + 1));
  return host + normal_path((folder.empty() ? "/" : folder) + url);
}

Result<IndexPage> parse_index_page(std::string_view text, const std::string& where) {
  const Json root = Json::parse(text).value_or(Json());
  if (!root.is_object())
    return fail(Code::malformed, format("{}: not a page of a package index in JSON", where));
  IndexPage out;
  if (const auto meta = root.find("meta"); meta != root.end() && meta->is_object())
    out.api_version = page_text_at(*meta, "api-version");
  if (!starts_with(out.api_version, "1."))
    return fail(
        out.api_version.empty() ? Code::malformed : Code::unsupported,
        format("{}: version `{}` of the simple API; cufit reads 1.x", where, out.api_version));
  out.name = normalize_name(page_text_at(root, "name"));
  const auto files = root.find("files");
  if (files == root.end() || !files->is_array())
    return fail(Code::malformed, format("{}: no list of files", where));
  if (files->size() > k_index_page_most_files)
    return fail(Code::malformed, format("{}: more than {} files", where, k_index_page_most_files));
  for (const Json& entry : *files) {
    IndexFile file = entry.is_object() ? file_of(entry) : IndexFile();
    if (file.filename.empty() || file.url.empty())
      ++out.skipped;
    else
      out.files.push_back(std::move(file));
  }
  return out;
}

}  // namespace cufit::formats

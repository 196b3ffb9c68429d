// SPDX-License-Identifier: Apache-2.0
#include "commands/resolve/index_variants.h"

#include "base/format.h"
#include "formats/python/index_config.h"
#include "host/install/http.h"

namespace cufit::commands {
namespace {

constexpr uint64_t k_most_bytes = 4u << 20;
constexpr std::string_view k_first = "torch-", k_last = "-variants.json";

// "torch-2.8.0-variants.json" -> "2.8.0"; empty: another file.
std::string version_of(const std::string& name) {
  if (!starts_with(name, k_first) || !ends_with(name, k_last) ||
      name.size() <= k_first.size() + k_last.size())
    return {};
  return name.substr(k_first.size(), name.size() - k_first.size() - k_last.size());
}

}  // namespace

Result<std::optional<IndexVariants>> read_index_variants(
    const std::vector<HeardPage>& pages, const std::vector<formats::Requirement>& requirements,
    host::Interrupts& interrupts) {
  std::optional<formats::PythonVersion> newest;
  IndexVariants out;
  for (const HeardPage& heard : pages)
    for (const formats::IndexFile& file : heard.page.files) {
      const std::string text = version_of(file.filename);
      const auto version = formats::parse_python_version(text);
      if (!version || version->pre || version->dev || !is_wanted_torch(text, requirements))
        continue;
      if (newest && !(formats::compare(*version, *newest) > 0)) continue;
      newest = version;
      out.torch = text;
      out.url = formats::file_url(heard.url, file);
    }
  if (!newest) return std::optional<IndexVariants>();
  host::HttpRequest request;
  request.url = out.url;
  request.most_bytes = k_most_bytes;
  CUFIT_TRY(answer, host::http_get(request, interrupts));
  out.url = formats::without_credentials(out.url);
  if (answer.status != 200)
    return fail(Code::io, format("`{}`: the server answers {}", out.url, answer.status));
  CUFIT_TRY(table, formats::parse_wheel_variants(answer.body, "`" + out.url + "`"));
  out.table = std::move(table);
  return std::optional<IndexVariants>(std::move(out));
}

}  // namespace cufit::commands

// SPDX-License-Identifier: Apache-2.0
#include "host/install/index_client.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/format.h"
#include "base/sha256.h"
#include "formats/python/python_metadata.h"
#include "host/install/http.h"
#include "host/files/atomic_write.h"

namespace cufit::host {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t k_index_client_most_bytes = 64u << 20;
constexpr const char* k_magic = "cufit.index/1";

// The ETag and the body of one page.
struct Cached {
  std::string etag, body;
};

// One file per page: "cufit.index/1 ETAG\n", then the body as it came.
class Cache {
 public:
  Cache(const Host& host, const std::string& url) {
    std::string base = host.variable("XDG_CACHE_HOME").value_or("");
    if (const std::string home = host.variable("HOME").value_or(""); base.empty() && !home.empty())
      base = home + "/.cache";
    if (base.empty()) return;
    folder_ = base + "/cufit/index";
    path_ = folder_ + "/" + sha256(url) + ".json";
  }

  std::optional<Cached> read() const {
    if (path_.empty()) return std::nullopt;
    std::ifstream in(path_, std::ios::binary);
    std::string head;
    if (!in || !std::getline(in, head) || !starts_with(head, std::string(k_magic) + " "))
      return std::nullopt;
    Cached out;
    out.etag = head.substr(std::string_view(k_magic).size() + 1);
    out.body.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    if (out.body.size() > k_index_client_most_bytes) return std::nullopt;
    return out;
  }

  // A cache that cannot be written costs time, not the answer.
  void write(const Cached& page) const {
    if (path_.empty()) return;
    std::error_code error;
    fs::create_directories(folder_, error);
    ::chmod(folder_.c_str(), 0700);  // what a private index has is nobody else's business
    (void)write_synced(path_, format("{} {}\n", k_magic, page.etag) + page.body).has_value();
  }

 private:
  std::string folder_, path_;
};

Result<IndexAnswer> parsed(const std::string& body, const std::string& shown,
                           IndexAnswer::How how) {
  CUFIT_TRY(page, formats::parse_index_page(body, "`" + shown + "`"));
  return IndexAnswer{std::move(page), {}, how, {}};
}

Error not_json(const std::string& shown, const std::string& type) {
  return fail(Code::unsupported,
              format("`{}` answers `{}`, not JSON: the index has no JSON API (PEP 691)", shown,
                     type.empty() ? "without a content type" : type));
}

}  // namespace

namespace {

Result<IndexAnswer> ask_page(const Host& host, const std::string& url, const std::string& project,
                             const IndexOptions& options, Interrupts& interrupts) {
  const std::string shown = formats::without_credentials(url);
  const Cache cache(host, url);
  const std::optional<Cached> kept = cache.read();
  if (options.offline) {
    if (!kept)
      return fail(Code::not_found,
                  format("`{}` is not in cufit's cache; ask once without --offline", shown));
    return parsed(kept->body, shown, IndexAnswer::How::offline);
  }
  HttpRequest request;
  request.url = url;
  request.most_bytes = k_index_client_most_bytes;
  request.stall_seconds = options.stall_seconds;
  request.headers = {"Accept: application/vnd.pypi.simple.v1+json"};
  if (kept && !kept->etag.empty()) request.headers.push_back("If-None-Match: " + kept->etag);
  Result<HttpAnswer> answer = http_get(request, interrupts);
  Error problem;
  if (answer && answer->status == 304 && kept)
    return parsed(kept->body, shown, IndexAnswer::How::unchanged);
  if (answer && answer->status == 200) {
    if (!contains(lower(answer->content_type), "json"))
      return not_json(shown, answer->content_type);
    Result<IndexAnswer> out = parsed(answer->body, shown, IndexAnswer::How::fetched);
    if (out) cache.write({answer->etag, answer->body});
    if (out) return out;
    problem = out.error();  // garbage
  } else if (answer && (answer->status == 404 || answer->status == 410)) {
    return fail(Code::not_found, format("`{}`: the index has no `{}`", shown, project));
  } else if (answer && answer->status == 406) {
    return not_json(shown, "406 Not Acceptable");
  } else if (answer) {
    problem = fail(answer->status == 401 || answer->status == 403 ? Code::no_permission : Code::io,
                   format("`{}` answers HTTP {}", shown, answer->status));
  } else {
    problem = answer.error();
  }
  if (!kept || problem.code == Code::cancelled) return problem;
  Result<IndexAnswer> stale = parsed(kept->body, shown, IndexAnswer::How::stale);
  if (!stale) return problem;
  stale->problem = problem.text();
  return stale;
}

}  // namespace

Result<IndexAnswer> ask_index(const Host& host, const std::string& index_url,
                              const std::string& project, const IndexOptions& options,
                              Interrupts& interrupts) {
  std::string url = index_url;
  while (ends_with(url, "/")) url.pop_back();
  url += "/" + formats::normalize_name(project) + "/";
  Result<IndexAnswer> answer = ask_page(host, url, project, options, interrupts);
  if (answer) answer->url = url;
  return answer;
}

}  // namespace cufit::host

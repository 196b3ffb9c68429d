// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"
#include "formats/prose/printable.h"
#include "host/install/curl_transfer.h"

namespace cufit::host {
namespace {

int on_post_progress(void* place, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const HttpPost& post = *static_cast<const HttpPost*>(place);
  return post.stopped && post.stopped() ? 1 : 0;
}

// What libcurl said, where it quotes nothing of the address behind the host's name.
std::string why_no_answer(const std::string& url, const char* said, CURLcode code) {
  const std::string_view behind_scheme = std::string_view(url).substr(url.find("://") + 3);
  const size_t slash = behind_scheme.find_first_of("/?#");
  const size_t at = behind_scheme.substr(0, slash).rfind('@');
  const std::string_view path =
      slash == behind_scheme.npos ? std::string_view() : behind_scheme.substr(slash);
  const std::string_view words(said);
  const bool quotes = (path.size() > 1 && contains(words, path)) || contains(words, "://") ||
                      (at != behind_scheme.npos && contains(words, behind_scheme.substr(0, at)));
  return formats::printable(quotes || words.empty() ? curl().easy_strerror(code) : said);
}

void set_post_options(CurlEasy& easy, const HttpPost& post) {
  easy.add_header("Content-Type: application/json; charset=utf-8");
  easy.add_header("Expect:");  // a small body needs no question beforehand
  easy.set(CURLOPT_FOLLOWLOCATION, 0L);
  easy.set(CURLOPT_POST, 1L);
  easy.set(CURLOPT_POSTFIELDS, post.body.data());
  easy.set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(post.body.size()));
}

}  // namespace

Result<HttpAnswer> http_post(const HttpPost& post) {
  if (!starts_with(post.url, "http://") && !starts_with(post.url, "https://"))
    return fail(Code::usage, "not an http or https address");
  if (curl().is_missing)
    return fail(Code::unsupported,
                "sending needs libcurl (libcurl.so.4 or libcurl-gnutls.so.4; Debian: libcurl4)");
  if (!curl().problem.empty()) return fail(Code::unsupported, curl().problem);
  CurlEasy easy;
  if (easy.get() == nullptr) return fail(Code::io, "libcurl cannot start a transfer");
  CurlTransfer transfer;
  transfer.most_bytes = k_most_post_answer_bytes;
  char said[CURL_ERROR_SIZE] = "";
  const std::string certificates = curl_certificates();
  if (k_curl_is_linked && certificates.empty() && starts_with(post.url, "https://"))
    return fail(Code::unsupported,
                "this system has no certificates (Debian: ca-certificates), and SSL_CERT_FILE "
                "names none");
  set_basics(easy, {post.url, post.seconds, certificates, said, on_post_progress, &post}, transfer);
  set_post_options(easy, post);
  const CURLcode code = curl().easy_perform(easy.get());
  // A long answer is one as well: its first bytes say what it is.
  if (code != CURLE_OK && !transfer.too_large) {
    if (post.stopped && post.stopped()) return fail(Code::cancelled, "interrupted");
    return fail(code == CURLE_OPERATION_TIMEDOUT ? Code::timeout : Code::io,
                why_no_answer(post.url, said, code));
  }
  curl().easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &transfer.answer.status);
  return std::move(transfer.answer);
}

}  // namespace cufit::host

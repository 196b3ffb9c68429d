// SPDX-License-Identifier: Apache-2.0
#include "host/install/http.h"

#include "base/format.h"
#include "formats/prose/printable.h"
#include "formats/python/index_config.h"
#include "host/install/curl_transfer.h"

namespace cufit::host {
namespace {

size_t on_header(char* bytes, size_t size, size_t count, void* place) {
  CurlTransfer& transfer = *static_cast<CurlTransfer*>(place);
  const std::string_view line(bytes, size * count);
  if (starts_with(line, "HTTP/")) {  // of the next answer after a redirect
    transfer.answer.etag.clear();
    transfer.answer.content_type.clear();
    transfer.answer.content_range.clear();
    transfer.answer.body.clear();
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size * count;
  const std::string name = lower(line.substr(0, colon));
  const std::string value = formats::printable(trim(line.substr(colon + 1)), 1024);
  if (name == "etag") transfer.answer.etag = value;
  if (name == "content-type") transfer.answer.content_type = value;
  if (name == "content-range") transfer.answer.content_range = value;
  return size * count;
}

int on_progress(void* place, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<CurlTransfer*>(place)->interrupts->caught() != 0 ? 1 : 0;
}

void set_get_options(CurlEasy& easy, const HttpRequest& request, CurlTransfer& transfer) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const bool secure = starts_with(request.url, "https://");
  easy.set(CURLOPT_REDIR_PROTOCOLS,
           secure ? long{CURLPROTO_HTTPS} : long{CURLPROTO_HTTP | CURLPROTO_HTTPS});
#pragma GCC diagnostic pop
  for (const std::string& line : request.headers) easy.add_header(line);
  easy.set(CURLOPT_FOLLOWLOCATION, 1L);
  easy.set(CURLOPT_MAXREDIRS, 10L);
  easy.set(CURLOPT_NETRC, long{CURL_NETRC_OPTIONAL});
  if (request.range.empty())
    easy.set(CURLOPT_ACCEPT_ENCODING, "");  // whatever this libcurl can unpack
  else
    easy.set(CURLOPT_RANGE, request.range.c_str());
  easy.set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.stall_seconds * 1000));
  easy.set(CURLOPT_LOW_SPEED_LIMIT, 100L);  // bytes a second: a trickle is a stall, too
  easy.set(CURLOPT_LOW_SPEED_TIME,
           request.stall_seconds < 1 ? 1L : static_cast<long>(request.stall_seconds));
  easy.set(CURLOPT_HEADERFUNCTION, on_header);
  easy.set(CURLOPT_HEADERDATA, &transfer);
}

}  // namespace

Result<HttpAnswer> http_get(const HttpRequest& request, Interrupts& interrupts) {
  const std::string shown = formats::without_credentials(request.url);
  if (!starts_with(request.url, "http://") && !starts_with(request.url, "https://"))
    return fail(Code::usage, format("`{}`: not an http or https address", shown));
  if (!curl().problem.empty()) return fail(Code::unsupported, curl().problem);
  CurlEasy easy;
  if (easy.get() == nullptr) return fail(Code::io, "libcurl cannot start a transfer");
  CurlTransfer transfer;
  transfer.most_bytes = request.most_bytes;
  transfer.interrupts = &interrupts;
  char said[CURL_ERROR_SIZE] = "";
  const std::string certificates = curl_certificates();
  if (k_curl_is_linked && certificates.empty() && starts_with(request.url, "https://"))
    return fail(Code::unsupported,
                format("`{}`: this system has no certificates (Debian: ca-certificates), and "
                       "SSL_CERT_FILE names none",
                       shown));
  set_basics(easy, {request.url, request.seconds, certificates, said, on_progress, &transfer},
             transfer);
  set_get_options(easy, request, transfer);
  const CURLcode code = curl().easy_perform(easy.get());
  if (transfer.too_large)
    return fail(Code::malformed,
                format("`{}`: the answer is larger than {} MiB", shown, request.most_bytes >> 20));
  if (interrupts.caught() != 0) return fail(Code::cancelled, "interrupted");
  if (code != CURLE_OK) {
    const std::string why = formats::without_credentials(
        formats::printable(said[0] != '\0' ? said : curl().easy_strerror(code)));
    return fail(code == CURLE_OPERATION_TIMEDOUT ? Code::timeout : Code::io,
                format("`{}`: {}", shown, why));
  }
  curl().easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &transfer.answer.status);
  char* last = nullptr;
  curl().easy_getinfo(easy.get(), CURLINFO_EFFECTIVE_URL, &last);
  transfer.answer.url = last == nullptr ? request.url : last;
  return std::move(transfer.answer);
}

std::string http_library() {
  if (!curl().problem.empty()) return {};
  const std::string all = curl().version();  // then zlib, brotli, ... one after another
  const size_t tls = all.find(' ');
  return all.substr(0, tls == std::string::npos ? tls : all.find(' ', tls + 1));
}

}  // namespace cufit::host

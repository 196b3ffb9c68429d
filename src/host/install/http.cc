// SPDX-License-Identifier: Apache-2.0
#include "host/install/http.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#define CURL_DISABLE_TYPECHECK  // its macros hide the functions' types
#include <curl/curl.h>

#include "base/format.h"
#include "base/number.h"
#include "formats/python/index_config.h"
#include "formats/prose/printable.h"
#include "host/install/certificates.h"

namespace cufit::host {
namespace {

struct Curl {
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_perform) easy_perform = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
  decltype(&::curl_version) version = nullptr;
  std::string problem;
  bool is_missing = false;
};

#ifdef CUFIT_LINKED  // a release: libcurl is part of the program
constexpr bool k_linked = true;
#define CUFIT_CURL(name) out.name = &::curl_##name
#else
constexpr bool k_linked = false;
#define CUFIT_CURL(name) find("curl_" #name, out.name)
#endif

Curl load() {
  Curl out;
#ifndef CUFIT_LINKED
  void* library = nullptr;
  // One ABI, built with one of two TLS libraries.
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"})
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    out.is_missing = true;
    out.problem =
        "asking a package index needs libcurl (libcurl.so.4 or libcurl-gnutls.so.4; Debian: "
        "libcurl4)";
    return out;
  }
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && out.problem.empty()) out.problem = format("libcurl has no {}", name);
  };
#endif
  CUFIT_CURL(easy_cleanup);
  CUFIT_CURL(easy_getinfo);
  CUFIT_CURL(easy_init);
  CUFIT_CURL(easy_perform);
  CUFIT_CURL(easy_setopt);
  CUFIT_CURL(easy_strerror);
  CUFIT_CURL(global_init);
  CUFIT_CURL(slist_append);
  CUFIT_CURL(slist_free_all);
  CUFIT_CURL(version);
  if (out.problem.empty() && out.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    out.problem = "libcurl cannot be initialised";
  return out;
}

const Curl& curl() {
  static const Curl k_curl = load();
  return k_curl;
}

struct Transfer {
  HttpAnswer answer;
  uint64_t most_bytes = 0;
  bool too_large = false;
  Interrupts* interrupts = nullptr;
};

size_t on_body(char* bytes, size_t size, size_t count, void* place) {
  Transfer& transfer = *static_cast<Transfer*>(place);
  const size_t length = size * count;
  if (transfer.answer.body.size() + length > transfer.most_bytes) {
    transfer.too_large = true;
    return 0;
  }
  transfer.answer.body.append(bytes, length);
  return length;
}

size_t on_header(char* bytes, size_t size, size_t count, void* place) {
  Transfer& transfer = *static_cast<Transfer*>(place);
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
  return static_cast<Transfer*>(place)->interrupts->caught() != 0 ? 1 : 0;
}

class Easy {
 public:
  Easy() : handle_(curl().problem.empty() ? curl().easy_init() : nullptr) {}
  ~Easy() {
    if (headers_ != nullptr) curl().slist_free_all(headers_);
    if (handle_ != nullptr) curl().easy_cleanup(handle_);
  }
  Easy(const Easy&) = delete;
  Easy& operator=(const Easy&) = delete;
  CURL* get() const { return handle_; }
  template <class Value>
  void set(CURLoption option, Value value) {
    curl().easy_setopt(handle_, option, value);
  }
  void add_header(const std::string& line) {
    headers_ = curl().slist_append(headers_, line.c_str());
    set(CURLOPT_HTTPHEADER, headers_);
  }

 private:
  CURL* handle_;
  curl_slist* headers_ = nullptr;
};

void set_options(Easy& easy, const HttpRequest& request, const std::string& certificates,
                 Transfer& transfer, char* said) {
  // The older options of this kind, which every libcurl 7.61 to 8 knows.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const bool secure = starts_with(request.url, "https://");
  easy.set(CURLOPT_PROTOCOLS, long{CURLPROTO_HTTP | CURLPROTO_HTTPS});
  easy.set(CURLOPT_REDIR_PROTOCOLS,
           secure ? long{CURLPROTO_HTTPS} : long{CURLPROTO_HTTP | CURLPROTO_HTTPS});
#pragma GCC diagnostic pop
  easy.set(CURLOPT_URL, request.url.c_str());
  for (const std::string& line : request.headers) easy.add_header(line);
  easy.set(CURLOPT_USERAGENT, "cufit/" CUFIT_VERSION);
  easy.set(CURLOPT_FOLLOWLOCATION, 1L);
  easy.set(CURLOPT_MAXREDIRS, 10L);
  easy.set(CURLOPT_NOSIGNAL, 1L);
  easy.set(CURLOPT_NETRC, long{CURL_NETRC_OPTIONAL});
  if (request.range.empty())
    easy.set(CURLOPT_ACCEPT_ENCODING, "");  // whatever this libcurl can unpack
  else
    easy.set(CURLOPT_RANGE, request.range.c_str());
  easy.set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.stall_seconds * 1000));
  easy.set(CURLOPT_LOW_SPEED_LIMIT, 100L);  // bytes a second: a trickle is a stall, too
  easy.set(CURLOPT_LOW_SPEED_TIME,
           request.stall_seconds < 1 ? 1L : static_cast<long>(request.stall_seconds));
  easy.set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.seconds * 1000));
  if (!certificates.empty()) easy.set(CURLOPT_CAINFO, certificates.c_str());
  easy.set(CURLOPT_ERRORBUFFER, said);
  easy.set(CURLOPT_WRITEFUNCTION, on_body);
  easy.set(CURLOPT_WRITEDATA, &transfer);
  easy.set(CURLOPT_HEADERFUNCTION, on_header);
  easy.set(CURLOPT_HEADERDATA, &transfer);
  easy.set(CURLOPT_XFERINFOFUNCTION, on_progress);
  easy.set(CURLOPT_XFERINFODATA, &transfer);
  easy.set(CURLOPT_NOPROGRESS, 0L);
}

struct GrpcTransfer {
  Transfer http;
  std::string status,
      message;  // grpc-status, grpc-message: of trailers, or of a head without a body
};

size_t on_grpc_body(char* bytes, size_t size, size_t count, void* place) {
  return on_body(bytes, size, count, &static_cast<GrpcTransfer*>(place)->http);
}

size_t on_grpc_header(char* bytes, size_t size, size_t count, void* place) {
  GrpcTransfer& transfer = *static_cast<GrpcTransfer*>(place);
  const std::string_view line(bytes, size * count);
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size * count;
  const std::string name = lower(line.substr(0, colon));
  const std::string value = formats::printable(trim(line.substr(colon + 1)), 256);
  if (name == "content-type") transfer.http.answer.content_type = value;
  if (name == "grpc-status") transfer.status = value;
  if (name == "grpc-message") transfer.message = value;
  return size * count;
}

// False: this libcurl was built without one of them.
bool set_grpc_options(Easy& easy, const GrpcRequest& request, GrpcTransfer& transfer, char* said) {
  const auto takes = [&](CURLoption option, auto value) {
    return curl().easy_setopt(easy.get(), option, value) == CURLE_OK;
  };
  if (!takes(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE}) ||
      !takes(CURLOPT_UNIX_SOCKET_PATH, request.socket.c_str()))
    return false;
  easy.set(CURLOPT_URL, ("http://localhost" + request.method).c_str());
  easy.set(CURLOPT_PROXY, "");  // whatever http_proxy says
  easy.set(CURLOPT_POST, 1L);
  easy.set(CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
  easy.set(CURLOPT_POSTFIELDS, request.body.data());
  easy.add_header("Content-Type: application/grpc");
  easy.add_header("TE: trailers");
  easy.add_header("Expect:");
  easy.add_header(format("grpc-timeout: {}m", static_cast<long>(request.seconds * 1000)));
  easy.set(CURLOPT_USERAGENT, "cufit/" CUFIT_VERSION);
  easy.set(CURLOPT_NOSIGNAL, 1L);
  easy.set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_seconds * 1000));
  easy.set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.seconds * 1000));
  easy.set(CURLOPT_ERRORBUFFER, said);
  easy.set(CURLOPT_WRITEFUNCTION, on_grpc_body);
  easy.set(CURLOPT_WRITEDATA, &transfer);
  easy.set(CURLOPT_HEADERFUNCTION, on_grpc_header);
  easy.set(CURLOPT_HEADERDATA, &transfer);
  return true;
}

// The transfer went well: did the call?
Result<std::string> grpc_answer(const GrpcRequest& request, long http_status,
                                GrpcTransfer transfer) {
  const std::string& socket = request.socket;
  constexpr uint64_t k_deadline_exceeded = 4, k_unimplemented = 12;
  if (http_status != 200 || !starts_with(transfer.http.answer.content_type, "application/grpc"))
    return fail(Code::malformed, format("`{}`: what answers there is no gRPC", socket));
  const std::optional<uint64_t> status = parse_uint(transfer.status);
  if (!status)
    return fail(Code::malformed, format("`{}`: the answer ends without its status", socket));
  if (*status == k_deadline_exceeded)  // it knows the limit and may be the first to say so
    return fail(Code::timeout, format("`{}`: no answer within {} s", socket, request.seconds));
  if (*status != 0)
    return fail(*status == k_unimplemented ? Code::unsupported : Code::io,
                format("`{}`: gRPC status {}: {}", socket, *status, transfer.message));
  return std::move(transfer.http.answer.body);
}

}  // namespace

Result<HttpAnswer> http_get(const HttpRequest& request, Interrupts& interrupts) {
  const std::string shown = formats::without_credentials(request.url);
  if (!starts_with(request.url, "http://") && !starts_with(request.url, "https://"))
    return fail(Code::usage, format("`{}`: not an http or https address", shown));
  if (!curl().problem.empty()) return fail(Code::unsupported, curl().problem);
  Easy easy;
  if (easy.get() == nullptr) return fail(Code::io, "libcurl cannot start a transfer");
  Transfer transfer;
  transfer.most_bytes = request.most_bytes;
  transfer.interrupts = &interrupts;
  char said[CURL_ERROR_SIZE] = "";
  // A distribution's libcurl knows its own place: it is told another only where the user names one.
  const char* named = std::getenv("SSL_CERT_FILE");
  const std::string certificates = k_linked           ? certificate_bundle(RealHost())
                                   : named != nullptr ? named
                                                      : "";
  if (k_linked && certificates.empty() && starts_with(request.url, "https://"))
    return fail(Code::unsupported,
                format("`{}`: this system has no certificates (Debian: ca-certificates), and "
                       "SSL_CERT_FILE names none",
                       shown));
  set_options(easy, request, certificates, transfer, said);
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

void set_post_options(Easy& easy, const HttpPost& post, const std::string& certificates,
                      Transfer& transfer, char* said) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  easy.set(CURLOPT_PROTOCOLS, long{CURLPROTO_HTTP | CURLPROTO_HTTPS});
#pragma GCC diagnostic pop
  easy.set(CURLOPT_URL, post.url.c_str());
  easy.add_header("Content-Type: application/json; charset=utf-8");
  easy.add_header("Expect:");  // a small body needs no question beforehand
  easy.set(CURLOPT_USERAGENT, "cufit/" CUFIT_VERSION);
  easy.set(CURLOPT_FOLLOWLOCATION, 0L);
  easy.set(CURLOPT_NOSIGNAL, 1L);
  easy.set(CURLOPT_POST, 1L);
  easy.set(CURLOPT_POSTFIELDS, post.body.data());
  easy.set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(post.body.size()));
  easy.set(CURLOPT_TIMEOUT_MS, static_cast<long>(post.seconds * 1000));
  if (!certificates.empty()) easy.set(CURLOPT_CAINFO, certificates.c_str());
  easy.set(CURLOPT_ERRORBUFFER, said);
  easy.set(CURLOPT_WRITEFUNCTION, on_body);
  easy.set(CURLOPT_WRITEDATA, &transfer);
  easy.set(CURLOPT_XFERINFOFUNCTION, on_post_progress);
  easy.set(CURLOPT_XFERINFODATA, &post);
  easy.set(CURLOPT_NOPROGRESS, 0L);
}

}  // namespace

Result<HttpAnswer> http_post(const HttpPost& post) {
  if (!starts_with(post.url, "http://") && !starts_with(post.url, "https://"))
    return fail(Code::usage, "not an http or https address");
  if (curl().is_missing)
    return fail(Code::unsupported,
                "sending needs libcurl (libcurl.so.4 or libcurl-gnutls.so.4; Debian: libcurl4)");
  if (!curl().problem.empty()) return fail(Code::unsupported, curl().problem);
  Easy easy;
  if (easy.get() == nullptr) return fail(Code::io, "libcurl cannot start a transfer");
  Transfer transfer;
  transfer.most_bytes = k_most_post_answer_bytes;
  char said[CURL_ERROR_SIZE] = "";
  const char* named = std::getenv("SSL_CERT_FILE");
  const std::string certificates = k_linked           ? certificate_bundle(RealHost())
                                   : named != nullptr ? named
                                                      : "";
  if (k_linked && certificates.empty() && starts_with(post.url, "https://"))
    return fail(Code::unsupported,
                "this system has no certificates (Debian: ca-certificates), and SSL_CERT_FILE "
                "names none");
  set_post_options(easy, post, certificates, transfer, said);
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

Result<std::string> grpc_call(const GrpcRequest& request) {
  const std::string& socket = request.socket;
  Easy easy;
  GrpcTransfer transfer;
  transfer.http.most_bytes = request.most_bytes;
  char said[CURL_ERROR_SIZE] = "";
  if (easy.get() == nullptr || !set_grpc_options(easy, request, transfer, said))
    return fail(Code::unsupported,
                format("`{}`: asking there needs a libcurl with HTTP/2 and unix sockets", socket));
  const CURLcode code = curl().easy_perform(easy.get());
  if (transfer.http.too_large)
    return fail(Code::malformed,
                format("`{}`: the answer is larger than {} MiB", socket, request.most_bytes >> 20));
  if (code == CURLE_OPERATION_TIMEDOUT)
    return fail(Code::timeout, format("`{}`: no answer within {} s", socket, request.seconds));
  long number = 0;
  if (code == CURLE_COULDNT_CONNECT) curl().easy_getinfo(easy.get(), CURLINFO_OS_ERRNO, &number);
  if (number != 0)  // libcurl's own words speak of a port
    return fail(
        number == EACCES || number == EPERM ? Code::no_permission : Code::io,
        format("`{}`: {}", socket, std::generic_category().message(static_cast<int>(number))));
  if (code != CURLE_OK)
    return fail(Code::io,
                format("`{}`: {}", socket,
                       formats::printable(said[0] != '\0' ? said : curl().easy_strerror(code))));
  long status = 0;
  curl().easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
  return grpc_answer(request, status, std::move(transfer));
}

std::string http_library() {
  if (!curl().problem.empty()) return {};
  const std::string all = curl().version();  // then zlib, brotli, ... one after another
  const size_t tls = all.find(' ');
  return all.substr(0, tls == std::string::npos ? tls : all.find(' ', tls + 1));
}

}  // namespace cufit::host

// SPDX-License-Identifier: Apache-2.0
#include "host/serve/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>

#include "base/format.h"
#include "formats/prose/printable.h"
#include "host/process/spawn.h"
#include "host/serve/civetweb_library.h"
#include "host/serve/password_check.h"

#ifdef CUFIT_LINKED
// Of packaging/libraries/civetweb/mbedtls.patch. A civetweb without it asks no client for a certificate, whatever it is
// told: cufit does not link with that one.
extern "C" int mg_mbedtls_verifies_clients(void);
#endif

namespace cufit::host {
namespace {

constexpr const char* k_threads = "16";       // a scrape takes one for a few milliseconds
constexpr const char* k_request_ms = "1000";  // a client that is slower is left
constexpr size_t k_most_pem = 1024 * 1024;
constexpr int k_large_block = 128 << 10;  // what glibc begins with

// civetweb says only that it failed; the system says why.
Result<void> can_listen(const std::string& address, uint16_t port, const std::string& shown) {
  const bool v6 = contains(address, ":");
  sockaddr_storage where{};
  socklen_t size = sizeof(sockaddr_in);
  bool known = true;
  if (v6) {
    auto& in6 = reinterpret_cast<sockaddr_in6&>(where);
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(port);
    known = inet_pton(AF_INET6, address.c_str(), &in6.sin6_addr) == 1;
    size = sizeof in6;
  } else {
    auto& in4 = reinterpret_cast<sockaddr_in&>(where);
    in4.sin_family = AF_INET;
    in4.sin_port = htons(port);
    known = address.empty() || inet_pton(AF_INET, address.c_str(), &in4.sin_addr) == 1;
  }
  const FileHandle probe(socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (probe.get() >= 0) (void)setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!known) errno = EINVAL;
  if (known && probe.get() >= 0 &&
      bind(probe.get(), reinterpret_cast<sockaddr*>(&where), size) == 0)
    return {};
  return fail(Code::io, format("nothing can listen on {}: {}", shown, std::strerror(errno)));
}

// What this program's TLS cannot keep is refused: a door that is open a little is open.
Result<void> can_keep(const formats::WebTls& tls) {
#ifdef CUFIT_LINKED
  if (tls.least == 13)
    return fail(
        Code::unsupported,
        "`min_version: TLS13`: this program has Mbed TLS 2.28, whose newest is TLS 1.2; write "
        "`min_version: TLS12`");
  CUFIT_CHECK(mg_mbedtls_verifies_clients() == 1, "civetweb without its patch");
#else
  (void)tls;
#endif
  return {};
}

Result<std::string> read_pem(const std::string& path) {
  const FileHandle file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0)
    return fail(errno == ENOENT ? Code::not_found : Code::no_permission,
                format("`{}`: {}", path, std::strerror(errno)));
  std::string out;
  char bytes[16384];
  ssize_t count = 0;
  while ((count = read(file.get(), bytes, sizeof bytes)) > 0 && out.size() <= k_most_pem)
    out.append(bytes, static_cast<size_t>(count));
  if (count < 0) return fail(Code::io, format("`{}`: {}", path, std::strerror(errno)));
  if (out.size() > k_most_pem)
    return fail(Code::malformed, format("`{}` has more than {}", path, format_bytes(k_most_pem)));
  return out;
}

// civetweb wants certificate and key in one file: that one is in memory, for the key's sake.
Result<FileHandle> one_pem_file(const formats::WebTls& tls) {
  CUFIT_TRY(certificate, read_pem(tls.certificate));
  CUFIT_TRY(key, read_pem(tls.key));
  if (!contains(certificate, "-----BEGIN CERTIFICATE-----"))
    return fail(Code::malformed, format("`{}` has no certificate (PEM)", tls.certificate));
  if (!contains(key, "PRIVATE KEY-----"))
    return fail(Code::malformed, format("`{}` has no private key (PEM)", tls.key));
  FileHandle out(memfd_create("cufit-certificate", MFD_CLOEXEC));
  const std::string both = certificate + "\n" + key;
  if (out.get() < 0 ||
      write(out.get(), both.data(), both.size()) != static_cast<ssize_t>(both.size()))
    return fail(Code::io, format("no file in memory can be made: {}", std::strerror(errno)));
  return out;
}

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

}  // namespace

struct HttpServer::State {
  HttpServerOptions options;
  std::function<HttpReply(const std::string&)> answer;
  std::optional<PasswordCheck> passwords;
  FileHandle pem;
  mg_context* context = nullptr;
  uint16_t port = 0;
  std::mutex mutex;
  std::string said;  // civetweb's last error while it starts

  ~State() {
    if (context != nullptr) civetweb().stop(context);
  }
  HttpReply reply_to(const mg_request_info& request, const char* authorization);
  void send(mg_connection* connection, const HttpReply& reply, bool head) const;
  Result<void> start();
  static int on_request(mg_connection* connection);
  static int on_message(const mg_connection* connection, const char* message);
};

HttpReply HttpServer::State::reply_to(const mg_request_info& request, const char* authorization) {
  if (passwords && !passwords->allows(authorization == nullptr ? "" : authorization))
    return {401, {}, "401: a name and a password are needed\n"};
  const std::string_view method = request.request_method == nullptr ? "" : request.request_method;
  if (method != "GET" && method != "HEAD") return {405, {}, "405: GET and HEAD alone\n"};
  return answer(request.local_uri == nullptr ? "" : request.local_uri);
}

void HttpServer::State::send(mg_connection* connection, const HttpReply& reply, bool head) const {
  std::string out =
      format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n", reply.status,
             reason_of(reply.status), reply.type.empty() ? "text/plain; charset=utf-8" : reply.type,
             reply.body.size());
  if (reply.status == 401) out += "WWW-Authenticate: Basic realm=\"cufit\", charset=\"UTF-8\"\r\n";
  if (reply.status == 405) out += "Allow: GET, HEAD\r\n";
  for (const auto& [name, value] : options.web.headers) out += format("{}: {}\r\n", name, value);
  out += "Connection: close\r\n\r\n";
  if (!head) out += reply.body;
  civetweb().write(connection, out.data(), out.size());
}

int HttpServer::State::on_request(mg_connection* connection) {
  const mg_request_info* request = civetweb().get_request_info(connection);
  State& state = *static_cast<State*>(request->user_data);
  const HttpReply reply =
      state.reply_to(*request, civetweb().get_header(connection, "Authorization"));
  const std::string_view method = request->request_method == nullptr ? "" : request->request_method;
  state.send(connection, reply, method == "HEAD");
  return reply.status;
}

// Nothing of it belongs on stderr: a client that goes away is no news.
int HttpServer::State::on_message(const mg_connection* connection, const char* message) {
  State* state = static_cast<State*>(civetweb().get_user_data(civetweb().get_context(connection)));
  if (state == nullptr) return 1;
  const std::lock_guard<std::mutex> lock(state->mutex);
  state->said = formats::printable(message == nullptr ? "" : message, 200);
  return 1;
}

Result<void> HttpServer::State::start() {
  const formats::WebConfig& web = options.web;
  const bool v6 = contains(options.address, ":");
  const std::string shown = v6 ? format("[{}]:{}", options.address, options.port)
                               : format("{}:{}", options.address, options.port);
  if (v6 && civetweb().check_feature(MG_FEATURES_IPV6) == 0)
    return fail(Code::unsupported,
                format("nothing can listen on {}: civetweb of this machine has no IPv6", shown));
  if (Result<void> can = can_listen(options.address, options.port, shown); !can) return can.error();
  if (web.has_tls) open_openssl_names();
  civetweb().init_library(web.has_tls ? MG_FEATURES_TLS : MG_FEATURES_DEFAULT);
  std::string where = !options.address.empty()                          ? options.address + ":"
                      : civetweb().check_feature(MG_FEATURES_IPV6) != 0 ? "+"
                                                                        : "";
  if (v6) where = "[" + options.address + "]:";
  const std::string listen = format("{}{}{}", where, options.port, web.has_tls ? "s" : "");
  std::vector<const char*> settings = {"listening_ports",
                                       listen.c_str(),
                                       "num_threads",
                                       k_threads,
                                       "request_timeout_ms",
                                       k_request_ms,
                                       "enable_keep_alive",
                                       "no",
                                       "enable_directory_listing",
                                       "no"};
  std::string pem_path;
  const char* const least = web.tls.least == 13 ? "5" : "4";
  if (web.has_tls) {
    CUFIT_TRY(made, one_pem_file(web.tls));
    pem = std::move(made);
    pem_path = format("/proc/self/fd/{}", pem.get());
    const char* const verify = web.tls.client == formats::ClientCertificate::required   ? "yes"
                               : web.tls.client == formats::ClientCertificate::if_given ? "optional"
                                                                                        : "no";
    settings.insert(settings.end(),
                    {"ssl_certificate", pem_path.c_str(), "ssl_certificate_chain", pem_path.c_str(),
                     "ssl_protocol_version", least, "ssl_verify_peer", verify,
                     // Else whoever has a certificate of an authority of the system comes in, too.
                     "ssl_default_verify_paths", "no"});
    if (!web.tls.client_authority.empty())
      settings.insert(settings.end(), {"ssl_ca_file", web.tls.client_authority.c_str()});
  }
  settings.push_back(nullptr);
  mg_callbacks callbacks{};
  // A thread answers for milliseconds: a heap for each would keep the memory of a page.
  mallopt(M_ARENA_MAX, 1);
  // Without these glibc raises both with each large block that is freed, and keeps a megabyte at the heap's end: of 4,500
  // scrapes the heap grew by that much, of which 8 KiB were in use (heaptrack).
  mallopt(M_MMAP_THRESHOLD, k_large_block);
  mallopt(M_TRIM_THRESHOLD, k_large_block);
  callbacks.begin_request = on_request;
  callbacks.log_message = on_message;
  mg_init_data init{};
  init.callbacks = &callbacks;
  init.user_data = this;
  init.configuration_options = settings.data();
  char text[256] = {};
  mg_error_data error{};
  error.text = text;
  error.text_buffer_size = sizeof text;
  context = civetweb().start2(&init, &error);
  if (context == nullptr)
    return fail(Code::io, format("nothing can listen on {}: {}",
                                 listen.substr(0, listen.size() - (web.has_tls ? 1 : 0)),
                                 said.empty() ? formats::printable(text, 200) : said));
  mg_server_port ports[4] = {};
  const int count = civetweb().get_server_ports(context, 4, ports);
  if (count > 0) port = static_cast<uint16_t>(ports[0].port);
  return {};
}

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpServer::HttpServer(HttpServer&&) noexcept = default;
HttpServer::~HttpServer() = default;

Result<HttpServer> HttpServer::start(HttpServerOptions options,
                                     std::function<HttpReply(const std::string& path)> answer) {
  if (!civetweb().problem.empty()) return fail(Code::unsupported, civetweb().problem);
  if (Result<void> kept = can_keep(options.web.tls); !kept) return kept.error();
  auto state = std::make_unique<State>();
  state->options = std::move(options);
  state->answer = std::move(answer);
  if (!state->options.web.users.empty()) {
    CUFIT_TRY(passwords, PasswordCheck::open(state->options.web.users));
    state->passwords.emplace(std::move(passwords));
  }
  if (Result<void> started = state->start(); !started) return started.error();
  return HttpServer(std::move(state));
}

uint16_t HttpServer::port() const { return state_->port; }

}  // namespace cufit::host

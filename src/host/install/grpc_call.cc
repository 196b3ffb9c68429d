// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <system_error>

#include "base/format.h"
#include "base/number.h"
#include "formats/prose/printable.h"
#include "host/install/curl_transfer.h"

namespace cufit::host {
namespace {

struct GrpcTransfer {
  CurlTransfer http;
  std::string status,
      message;  // grpc-status, grpc-message: of trailers, or of a head without a body
};

size_t on_grpc_body(char* bytes, size_t size, size_t count, void* place) {
  return keep_body(bytes, size, count, &static_cast<GrpcTransfer*>(place)->http);
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
bool set_grpc_options(CurlEasy& easy, const GrpcRequest& request, GrpcTransfer& transfer,
                      char* said) {
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

Result<std::string> grpc_call(const GrpcRequest& request) {
  const std::string& socket = request.socket;
  CurlEasy easy;
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

}  // namespace cufit::host

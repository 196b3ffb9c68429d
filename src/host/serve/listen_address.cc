// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"
#include "base/number.h"
#include "formats/prose/printable.h"
#include "host/serve/http_server.h"

namespace cufit::host {

Result<std::pair<std::string, uint16_t>> parse_listen_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  const Error wrong = fail(
      Code::usage, format("`--listen {}`: an address and a port, such as 127.0.0.1:9836 or :9836",
                          formats::printable(text, 80)));
  if (colon == std::string::npos) return wrong;
  std::string address = text.substr(0, colon);
  const std::optional<uint64_t> port = parse_uint(std::string_view(text).substr(colon + 1));
  if (!port || *port > 65535) return wrong;
  if (address.size() > 2 && address.front() == '[' && address.back() == ']')
    address = address.substr(1, address.size() - 2);
  else if (contains(address, ":"))
    return wrong;
  if (address == "localhost") address = "127.0.0.1";
  if (address.find_first_not_of("0123456789abcdefABCDEF.:") != std::string::npos) return wrong;
  return std::pair(address, static_cast<uint16_t>(*port));
}

}  // namespace cufit::host

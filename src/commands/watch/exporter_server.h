// SPDX-License-Identifier: Apache-2.0
// The server of `cufit exporter`: it begins anew when the files of `--config` have changed, as certificates are renewed.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "commands/context.h"
#include "commands/watch/web_settings.h"
#include "host/serve/http_server.h"

namespace cufit::commands {

class ExporterServer {
 public:
  using Answer = std::function<host::HttpReply(const std::string& path)>;

  // `config`: the file of --config, empty without one; `options.web` is what it said.
  ExporterServer(const Context& context, host::HttpServerOptions options, std::string config,
                 Answer answer);

  Result<void> start();
  // Looks at the files from time to time. Changed ones are taken when they have rested for one look and a server on another
  // port has begun with them; until then, and where they cannot be used, the old ones stay, and stderr says so. The port is
  // closed for a part of a second.
  void attend();
  uint16_t port() const { return options_.port; }

 private:
  void take(const std::string& stamp);
  Result<void> try_settings(const WebSettings& settings) const;

  const Context& context_;
  host::HttpServerOptions options_;
  const std::string config_;
  const Answer answer_;
  std::optional<host::HttpServer> server_;
  std::string stamp_;    // of the files that are in use, or were refused
  std::string changed_;  // seen at the last look
  double looked_ = 0;
};

}  // namespace cufit::commands

// SPDX-License-Identifier: Apache-2.0
#include "commands/watch/web_settings.h"

#include "base/format.h"
#include "base/path.h"
#include "host/files/file_stamp.h"
#include "host/files/secret_file.h"

namespace cufit::commands {

Result<WebSettings> read_web_settings(const Context& context, const std::string& path) {
  WebSettings out;
  CUFIT_TRY(text, context.files.read_file(path, 1u << 20));
  CUFIT_TRY(config, formats::parse_web_config(text, path));
  if (!config.has_tls && config.users.empty())
    return fail(Code::usage,
                format("`{}` has neither TLS nor users: the page would be open", path));
  // A file that it names lies beside it.
  for (std::string* file : {&config.tls.certificate, &config.tls.key, &config.tls.client_authority})
    if (!file->empty()) *file = path_in(parent_folder(path), *file);
  // Others may read its hashes, as Prometheus' own exporters have it; who may write it chooses the users.
  if (Result<host::SecretExposure> checked = host::check_secret(path); !checked)
    return checked.error();
  if (config.has_tls) {
    CUFIT_TRY(exposure, host::check_secret(config.tls.key));
    if (exposure != host::SecretExposure::none) out.exposed.push_back(config.tls.key);
  }
  out.config = std::move(config);
  return out;
}

std::string web_stamp(const std::string& path, const formats::WebConfig& config) {
  std::string out = host::file_stamp(path);
  for (const std::string* file :
       {&config.tls.certificate, &config.tls.key, &config.tls.client_authority})
    out += " " + (file->empty() ? std::string() : host::file_stamp(*file));
  return out;
}

}  // namespace cufit::commands

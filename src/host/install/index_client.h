// SPDX-License-Identifier: Apache-2.0
// Asks a package index which files of a project it has (simple API in JSON, PEP 691), with a cache
// below XDG_CACHE_HOME/cufit/index. cufit asks only the indexes that a user or the installers'
// configuration names; it has none of its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/python/index_config.h"
#include "formats/python/index_page.h"
#include "host/process/child_process.h"
#include "host/files/host.h"

namespace cufit::host {

struct IndexSettings {
  std::vector<formats::IndexUrl> indexes;  // in the order in which uv would ask; the default last
  std::string tool;                        // "uv", "pip", or empty: nobody configured any
  std::vector<std::string> problems;       // configuration that cannot be read
};

// uv's: UV_INDEX, UV_DEFAULT_INDEX, UV_EXTRA_INDEX_URL, UV_INDEX_URL, then uv.toml or
// pyproject.toml of `folder` and its parents, of the user, of the system. Where uv has none, pip's:
// PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, then pip.conf of the environment, the user, the system.
IndexSettings index_settings(const Host& host, const std::string& folder);

struct IndexOptions {
  bool offline = false;
  double stall_seconds = 20;
};

struct IndexAnswer {
  formats::IndexPage page;
  std::string url;  // of the page
  enum class How { fetched, unchanged, offline, stale } how = How::fetched;
  std::string problem;  // stale: why the index was not heard
};

// Error{not_found}: the index has no such project, or (offline) the cache does not; {unsupported}:
// it answers in HTML; others as of http_get. No message holds a password.
Result<IndexAnswer> ask_index(const Host& host, const std::string& index_url,
                              const std::string& project, const IndexOptions& options,
                              Interrupts& interrupts);

}  // namespace cufit::host

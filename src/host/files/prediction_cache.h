// SPDX-License-Identifier: Apache-2.0
// Answers of `cufit fit` that are kept for `cufit fit --cached`: one file for each question, below
// $XDG_CACHE_HOME/cufit/fit (else ~/.cache/cufit/fit), mode 0600.
//
// Only files of this user that nobody else may read or write are used, in a folder of this user that
// nobody else may write to. Writing goes beside and is renamed. Of more than k_most_predictions the
// oldest go.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/files/host.h"

namespace cufit::host {

inline constexpr size_t k_most_predictions = 256;
inline constexpr size_t k_most_prediction_bytes = size_t{1} << 20;

class PredictionCache {
 public:
  // Variables of `host` say where; no folder = nothing is kept and nothing found.
  explicit PredictionCache(const Host& host);
  const std::string& folder() const { return folder_; }

  // `key`: any text. nullopt: nothing is kept, or what is there may not be trusted.
  std::optional<std::string> load(const std::string& key) const;
  // False: the folder is not this user's alone, cannot be made or written, or the text is too long.
  bool save(const std::string& key, std::string_view text) const;

 private:
  std::string file_of(const std::string& key) const;
  std::string folder_;
};

// What tells whether a file is still the one that was: "sha256:..." of its bytes, of a file over 1
// MiB its size and time of change; empty: it cannot be read.
std::string file_mark(const std::string& path);

// Of the clock that marks files: seconds since 1970, rounded down.
int64_t time_of_files();
// Its bytes or its place changed at that second or later, or it is not there.
bool is_changed_since(const std::string& path, int64_t seconds);

}  // namespace cufit::host

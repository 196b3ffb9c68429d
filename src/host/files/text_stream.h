// SPDX-License-Identifier: Apache-2.0
// A file, pipe or standard input read from front to back in pieces, as a log of any size is read.
// Unlike Host::read_file this takes pipes (`cufit explain <(kubectl logs job)`): the user named it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cufit::host {

// What one piece is, and how far it reaches: bytes read so far of `total` (0 = not known: a pipe).
using TakePiece = std::function<void(std::string_view piece, uint64_t done, uint64_t total)>;

// "-" is standard input. The error names the path as given.
Result<void> read_stream(const std::string& path, const TakePiece& take);

}  // namespace cufit::host

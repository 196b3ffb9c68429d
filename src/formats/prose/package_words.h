// SPDX-License-Identifier: Apache-2.0
// Package names that matter to cufit: only these are believed when prose or an unmarked row names a
// version ("epoch 1.0" and "loss 0.23" look the same as "torch 2.3").
#pragma once

#include <string_view>

namespace cufit::formats {

// The name as packages are called ("torch" for "PyTorch"); empty = not one of them. Case, "-" and
// "_" make no difference.
std::string_view known_package(std::string_view name);

}  // namespace cufit::formats

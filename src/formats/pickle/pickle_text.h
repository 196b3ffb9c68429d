// SPDX-License-Identifier: Apache-2.0
// The text arguments of protocol 0. Used by pickle.cc only.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/pickle/pickle.h"

namespace cufit::formats {

// The line after STRING: a quoted Python literal. Nothing when it is not quoted.
std::optional<std::string> unquote_pickle(std::string_view line);
// The line after UNICODE: Python's raw-unicode-escape (\uXXXX, \UXXXXXXXX, the rest Latin-1).
std::string unescape_pickle(std::string_view line);
// The line after INT ("01" is True, "00" False), LONG ("123L") or FLOAT.
std::optional<PickleValue> pickle_integer(std::string_view line);
std::optional<PickleValue> pickle_real(std::string_view line);
// `size` bytes of two's complement after LONG1 and LONG4.
PickleValue pickle_long(const unsigned char* bytes, size_t size);

}  // namespace cufit::formats

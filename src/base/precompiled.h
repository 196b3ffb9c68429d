// SPDX-License-Identifier: Apache-2.0
// What nearly every file includes, parsed once for all folders (CMakeLists.txt). A file names what it
// needs all the same: -DCUFIT_UNITY=0 compiles each by itself.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/result.h"
#include "base/version.h"

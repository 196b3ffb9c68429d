// SPDX-License-Identifier: Apache-2.0
// Names out of a traced program, in lines of Python that are there to be copied.
#pragma once

#include <string>
#include <string_view>

namespace cufit::report {

// "encoder", not "0" and not `x"); f("`.
bool is_python_name(std::string_view text);

// A module of `model` by its path: attributes, or get_submodule() where a part is no name. Of an
// empty path the model.
std::string python_module(std::string_view path);

}  // namespace cufit::report

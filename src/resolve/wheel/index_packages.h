// SPDX-License-Identifier: Apache-2.0
// What a package index really has of torch: narrows the wheel table to it, and shows releases that
// the table does not know yet.
#pragma once

#include <string>
#include <vector>

#include "formats/python/index_page.h"
#include "resolve/wheel/wheel.h"

namespace cufit::resolve {

struct Available {
  std::string torch, local;          // "2.14.1", "cu126"; local empty: the index's own variant
  std::vector<std::string> pythons;  // minors; "3.13t" for free-threaded ones
};
// Wheels of a project page for a platform ("linux_x86_64") that a C library of `glibc` can load
// (nullopt: any), yanked ones left out; newest first, one row per version.
std::vector<Available> available_of(const formats::IndexPage& page, std::string_view platform,
                                    const std::optional<Version>& glibc);

// Takes the Pythons of each wheel from the index, and adds what the table does not know, without
// device code. Returns the places of the wheels that the index does not have.
std::vector<size_t> match_available(const std::vector<Available>& available,
                                    std::string_view platform, std::vector<Wheel>& wheels);

}  // namespace cufit::resolve

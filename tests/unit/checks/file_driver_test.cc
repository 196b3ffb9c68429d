// SPDX-License-Identifier: Apache-2.0
#include "checks/file_driver.h"

#include <gtest/gtest.h>

namespace cufit::checks {
namespace file_driver_test {

using Fit = FileDriver::Fit;

struct Case {
  const char* needed;
  const char* cc;
  const char* driver;  // "" = not named
  Fit fit;
  uint32_t branch;
};

TEST(FileDriver, WhatLinksARuntimeNeedsItsDriver) {
  const knowledge::Knowledge& world = knowledge::Knowledge::builtin();
  for (const Case& c : {
           Case{"libcudart.so.13", "12.0", "535", Fit::gpu_older, 580},
           Case{"libcudart.so.12", "12.0", "570.86.10", Fit::ok, 570},
           Case{"libcudart.so.13", "12.0", "570.86.10", Fit::cuda_too_new, 580},
           Case{"libcudart.so.13", "12.0", "580", Fit::ok, 580},
           Case{"libcudart.so.13", "8.0", "470.129.06", Fit::cuda_too_new, 580},
           Case{"libcudart.so.12", "8.0", "470.129.06", Fit::cuda_too_new, 525},
           Case{"libcudart.so.11.0", "8.0", "470.129.06", Fit::ok, 450},
           Case{"libcublas.so.13", "8.6", "535.183.01", Fit::cuda_too_new, 580},
           Case{"libcusparse.so.12", "8.6", "535.183.01", Fit::ok, 455},  // also of CUDA 13
           Case{"libc.so.6", "8.9", "535.183.01", Fit::ok, 520},
           Case{"libcudart.so.13", "8.9", "", Fit::unknown, 580},
           Case{"libcudart.so.12", "6.1", "595.45.04", Fit::gpu_dropped, 525},
           Case{"libcudart.so.12", "3.5", "470.42.01", Fit::never, 0},
           Case{"libcudart.so.11.0", "3.5", "470.42.01", Fit::ok, 450},
       }) {
    const std::optional<Version> driver = parse_version(c.driver);
    const FileDriver said =
        file_driver({"libm.so.6", c.needed}, *parse_compute_capability(c.cc), driver, world);
    EXPECT_EQ(said.fit, c.fit) << c.needed << " on " << c.cc << " with " << c.driver;
    EXPECT_EQ(said.branch, c.branch) << c.needed << " on " << c.cc << " with " << c.driver;
  }
}

TEST(FileDriver, TheNewestLinkedMajorCounts) {
  EXPECT_EQ(linked_cuda({"libcudart.so.12", "libnvrtc.so.13"}), 13u);
  EXPECT_EQ(linked_cuda({"libcufft.so.12", "libcudart.so"}), std::nullopt);
}

}  // namespace file_driver_test
}  // namespace cufit::checks

// SPDX-License-Identifier: Apache-2.0
#include "host/files/secret_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/format.h"
#include "support/fake_root.h"

namespace cufit::host {
namespace secret_file_test {

using Exposure = SecretExposure;

TEST(SecretFile, WhoGetsAtIt) {
  struct Case {
    uint32_t mode, owner;
    const char* path;
    Exposure exposure;
  };
  constexpr const char* k_place = "/etc/cufit/slack";
  constexpr const char* k_kubernetes = "/etc/notify/..2026_11_29_10_00_00.123/slack";
  constexpr uint32_t k_user = 1000, k_other_namespace = 65534;
  const Case cases[] = {
      {0600, k_user, k_place, Exposure::none},
      {0400, k_user, k_place, Exposure::none},
      {0640, k_user, k_place, Exposure::others},
      {0644, k_user, k_place, Exposure::others},
      {0444, k_user, k_place, Exposure::others},
      {0660, k_user, k_place, Exposure::others},
      {0664, k_user, k_place, Exposure::others},  // of a umask of 002
      {0666, k_user, k_place, Exposure::everybody},
      {0602, k_user, k_place, Exposure::everybody},
      {0600, 0, k_place, Exposure::none},
      {0640, 0, k_place, Exposure::none},  // root:ssl-cert
      {0644, 0, k_place, Exposure::others},
      {0660, 0, k_place, Exposure::others},
      {0666, 0, k_place, Exposure::everybody},
      // systemd's credentials, for root and for User=; secrets of containers.
      {0400, 0, "/run/credentials/cufit-watch.service/slack", Exposure::none},
      {0440, 0, "/run/credentials/cufit-watch.service/slack", Exposure::none},
      {0444, 0, "/run/secrets/slack", Exposure::none},
      {0444, k_other_namespace, "/run/secrets/slack", Exposure::none},
      {0644, k_other_namespace, "/run/secrets/slack", Exposure::others},
      // Volumes of Kubernetes: as they are, with defaultMode, with fsGroup, and one that is none.
      {0644, 0, k_kubernetes, Exposure::none},
      {0440, 0, k_kubernetes, Exposure::none},
      {0664, 0, k_kubernetes, Exposure::others},
      {0644, k_user, k_kubernetes, Exposure::others},
      {0644, 0, "/etc/notify/../slack", Exposure::others},
      {0666, 0, k_kubernetes, Exposure::everybody},
  };
  for (const Case& one : cases)
    EXPECT_EQ(secret_exposure({S_IFREG | one.mode, one.owner, one.path}), one.exposure)
        << format("{:o} {} {}", one.mode, one.owner, one.path);
}

TEST(SecretFile, IsAskedOfTheFileBehindLinks) {
  test::FakeRoot root;
  root.file("/secret it", "x").link("/link", "secret it");
  const std::string link = root.at("/link");
  ASSERT_EQ(::chmod(link.c_str(), 0600), 0);
  EXPECT_EQ(*check_secret(link), Exposure::none);
  ASSERT_EQ(::chmod(link.c_str(), 0664), 0);
  EXPECT_EQ(*check_secret(link), Exposure::others);
  ASSERT_EQ(::chmod(link.c_str(), 0666), 0);
  EXPECT_FALSE(check_secret(link));
  const Result<Exposure> named = check_secret(root.at("/secret it"));
  ASSERT_FALSE(named);
  EXPECT_TRUE(contains(named.error().text(), "chmod 600 '")) << named.error().text();
  EXPECT_EQ(*check_secret(root.at("/none")), Exposure::none);  // reading it says why
  EXPECT_EQ(*check_secret("/dev/null"), Exposure::none);
}

}  // namespace secret_file_test
}  // namespace cufit::host

// SPDX-License-Identifier: Apache-2.0
#include "formats/system/pod_resources.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace cufit::formats {
namespace pod_resources_test {

std::string number(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string field(uint32_t id, const std::string& bytes) {
  return number(id << 3 | 2) + number(bytes.size()) + bytes;
}
std::string devices(const std::string& resource, const std::vector<std::string>& ids) {
  std::string out = field(1, resource);
  for (const std::string& id : ids) out += field(2, id);
  return field(2, out);
}
std::string pod(const std::string& space, const std::string& name, const std::string& inside) {
  return field(1, field(1, name) + field(2, space) + field(3, field(1, "main") + inside));
}
const std::string k_gpu = "GPU-3b1ba5c4-0a1c-4ffb-8bd0-0e0c5d8e9b60";

// protoc 35.1 on kubernetes/kubelet's api.proto: pods a/train (main: one GPU with topology, cpu_ids and memory; side: an RDMA
// device) and b/claim (main: a claim's device with its CDI name and share).
constexpr char k_protoc_answer[] =
    "\012\216\001\012\005train\022\001a\032f\012\004main\022C\012\016nvidia.com/gpu\022+GPU-3b"
    "1ba5c4-0a1c-4ffb-8bd0-0e0c5d8e9b60::3\032\004\012\002\010\001\032\004\000\001\254\002\042"
    "\023\012\006memory\020\200\200\200\200\200 \032\002\012\000\032\032\012\004side\022\022\012"
    "\010rdma/hca\022\006mlx5_0\012e\012\005claim\022\001b\032V\012\004main*N\022\001c\032\001"
    "b\042F\012\042\012 k8s.gpu.nvidia.com/claim=u-gpu-1\022\016gpu.nvidia.com\032\006node-1\042"
    "\005gpu-1*\001s\042\001\004";

TEST(PodResources, AnswerThatProtocMade) {
  const std::string_view message(k_protoc_answer, sizeof k_protoc_answer - 1);
  const PodResources read = parse_pod_resources(message);
  EXPECT_TRUE(read.damages.empty());
  ASSERT_EQ(read.pods.size(), 2u);
  EXPECT_EQ(read.pods[0].name, "train");
  EXPECT_EQ(read.pods[0].name_space, "a");
  ASSERT_EQ(read.pods[0].containers.size(), 2u);
  EXPECT_EQ(read.pods[0].containers[0].name, "main");
  ASSERT_EQ(read.pods[0].containers[0].devices.size(), 1u);
  EXPECT_EQ(read.pods[0].containers[0].devices[0].resource, "nvidia.com/gpu");
  EXPECT_EQ(read.pods[0].containers[0].devices[0].id, k_gpu + "::3");
  EXPECT_TRUE(read.pods[0].containers[1].devices.empty());
  ASSERT_EQ(read.pods[1].containers[0].devices.size(), 1u);
  EXPECT_EQ(read.pods[1].containers[0].devices[0].resource, "gpu.nvidia.com");
  EXPECT_EQ(read.pods[1].containers[0].devices[0].id, "gpu-1");
}

TEST(PodResources, NoAnswerIsNoPod) {
  EXPECT_TRUE(parse_pod_resources("").pods.empty());
  EXPECT_TRUE(parse_pod_resources("").damages.empty());
}

// Cut between two pods it is a whole message of fewer; everywhere else that is seen.
TEST(PodResources, CutAtEveryByte) {
  const std::string first = pod("a", "train", devices("nvidia.com/gpu", {k_gpu}));
  const std::string all = first + pod("b", "serve", devices("nvidia.com/gpu", {k_gpu + "::1"}));
  for (size_t size = 0; size <= all.size(); ++size) {
    const PodResources read = parse_pod_resources(std::string_view(all).substr(0, size));
    const bool is_whole = size == 0 || size == first.size() || size == all.size();
    EXPECT_EQ(read.damages.empty(), is_whole) << size;
    EXPECT_EQ(read.pods.size(), size < first.size() ? 0u : size < all.size() ? 1u : 2u) << size;
    for (const Damage& one : read.damages) EXPECT_LE(one.offset, size);
  }
}

// As above, but the outer lengths agree with what is left: the cut is inside a pod.
TEST(PodResources, CutInsideAPod) {
  const std::string inside = field(1, "train") + field(2, "a") +
                             field(3, field(1, "main") + devices("nvidia.com/gpu", {k_gpu}));
  size_t whole = 0;
  for (size_t size = 0; size <= inside.size(); ++size)
    whole += parse_pod_resources(field(1, inside.substr(0, size))).damages.empty() ? 1 : 0;
  EXPECT_EQ(whole, 4u);  // before and after each of the three fields
}

TEST(PodResources, FieldsOfLaterVersionsAreSkipped) {
  const std::string later = number(99 << 3) + number(1ull << 63) + number(98 << 3 | 1) +
                            std::string(8, 'x') + number(97 << 3 | 5) + std::string(4, 'x') +
                            field(96, "x");
  const PodResources read = parse_pod_resources(
      later +
      field(1, later + field(1, "p") + later + field(3, later + devices("nvidia.com/gpu", {"x"}))) +
      later);
  EXPECT_TRUE(read.damages.empty());
  ASSERT_EQ(read.pods.size(), 1u);
  EXPECT_EQ(read.pods[0].name, "p");
  EXPECT_EQ(read.pods[0].containers.at(0).devices.size(), 1u);
}

TEST(PodResources, TheResourceMayFollowItsDevices) {
  const PodResources read = parse_pod_resources(
      field(1, field(3, field(2, field(2, k_gpu) + field(1, "nvidia.com/gpu.shared")))));
  ASSERT_EQ(read.pods.at(0).containers.at(0).devices.size(), 1u);
  EXPECT_EQ(read.pods[0].containers[0].devices[0].resource, "nvidia.com/gpu.shared");
}

TEST(PodResources, NoiseIsDamage) {
  for (const std::string& noise :
       {std::string("\x0b"), std::string("\x08"), std::string(1, '\0'), number(1ull << 40),
        std::string(11, '\xff'), field(1, "\x08\x01"),
        std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        std::string("HTTP/1.1 200 OK\r\n\r\n")})
    EXPECT_EQ(parse_pod_resources(noise).damages.size(), 1u) << noise;
}

// 4 MiB of the smallest messages.
TEST(PodResources, HasBounds) {
  const auto repeated = [](const std::string& what, size_t count) {
    std::string out;
    for (size_t i = 0; i < count; ++i) out += what;
    return out;
  };
  const PodResources pods = parse_pod_resources(repeated(field(1, ""), 1u << 20));
  EXPECT_EQ(pods.pods.size(), 4096u);
  EXPECT_EQ(pods.damages.size(), 1u);
  const PodResources containers =
      parse_pod_resources(field(1, repeated(field(3, ""), 1u << 20)) + field(1, ""));
  EXPECT_EQ(containers.pods.size(), 1u);
  EXPECT_EQ(containers.pods[0].containers.size(), 16384u);
  EXPECT_EQ(containers.damages.size(), 1u);
  const PodResources ids = parse_pod_resources(
      field(1, field(3, field(2, field(1, "nvidia.com/gpu") + repeated(field(2, ""), 1u << 20)))));
  EXPECT_EQ(ids.damages.size(), 1u);
  const PodResources claims = parse_pod_resources(
      field(1, field(3, field(5, repeated(field(4, field(2, "gpu.nvidia.com")), 1u << 17)))));
  EXPECT_EQ(claims.damages.size(), 1u);
  EXPECT_LE(claims.pods[0].containers[0].devices.size(), 65536u);
}

TEST(PodResources, NamesArePrintableAndBounded) {
  const PodResources read =
      parse_pod_resources(field(1, field(1, "\x1b[2J\xff") + field(2, std::string(9999, 'n'))));
  EXPECT_EQ(read.pods.at(0).name.find('\x1b'), std::string::npos);
  EXPECT_LE(read.pods[0].name_space.size(), 260u);
}

TEST(PodResources, WhichGpuADeviceIdNames) {
  const auto uuid = [](const std::string& id) {
    return gpu_of_device({"nvidia.com/gpu", id}).uuid;
  };
  const auto minor = [](const std::string& id, const char* resource = "nvidia.com/gpu") {
    return gpu_of_device({resource, id}).minor;
  };
  const std::string mig = "MIG-3b1ba5c4-0a1c-4ffb-8bd0-0e0c5d8e9b60";
  EXPECT_EQ(uuid(k_gpu), k_gpu);
  EXPECT_EQ(uuid(k_gpu + "::3"), k_gpu);
  EXPECT_EQ(uuid(mig), mig);
  EXPECT_EQ(uuid(mig + "::0"), mig);
  EXPECT_EQ(uuid("MIG-" + k_gpu + "/7/0"), "MIG-" + k_gpu + "/7/0");
  EXPECT_EQ(uuid("MIG-" + k_gpu + "/7/0::12"), "MIG-" + k_gpu + "/7/0");
  EXPECT_EQ(minor("nvidia3"), 3u);
  EXPECT_EQ(minor("nvidia3/vgpu1"), 3u);
  EXPECT_EQ(minor("gpu-5", "gpu.nvidia.com"), 5u);
  // HAMi's shares, parts of a GPU, other things.
  for (const std::string& id :
       {k_gpu + "-3", k_gpu + "::", k_gpu + "::x", k_gpu + "/7/0", std::string("GPU-"),
        "MIG-" + k_gpu, "MIG-" + k_gpu + "/7", std::string("nvidia0/gi1"),
        std::string("nvidia0/vgpu"), std::string("nvidia"), std::string("nvidia256"),
        std::string("gpu-5"), std::string("0"), std::string()}) {
    EXPECT_EQ(uuid(id), "") << id;
    EXPECT_FALSE(minor(id)) << id;
  }
  EXPECT_FALSE(minor("gpu-0-mig-9-0-1", "gpu.nvidia.com"));
  EXPECT_FALSE(minor("nvidia0", "gpu.nvidia.com"));
}

TEST(PodResources, Frame) {
  EXPECT_EQ(grpc_message(std::string("\0\0\0\0\0", 5)).value(), "");
  EXPECT_EQ(grpc_message(std::string("\0\0\0\0\x02xy", 7)).value(), "xy");
  EXPECT_EQ(grpc_message("").error().code, Code::malformed);
  EXPECT_EQ(grpc_message(std::string("\0\0\0\0", 4)).error().code, Code::malformed);
  EXPECT_EQ(grpc_message(std::string("\x01\0\0\0\x02xy", 7)).error().code, Code::unsupported);
  EXPECT_EQ(grpc_message(std::string("\0\0\0\0\x03xy", 7)).error().code, Code::malformed);
  EXPECT_EQ(grpc_message(std::string("\0\0\0\0\x01xy", 7)).error().code, Code::malformed);
  EXPECT_EQ(grpc_message(std::string("\0\xff\xff\xff\xffxy", 7)).error().code, Code::malformed);
}

}  // namespace pod_resources_test
}  // namespace cufit::formats

// SPDX-License-Identifier: Apache-2.0
#include "formats/system/pod_resources.h"

#include <utility>

#include "base/format.h"
#include "base/number.h"
#include "formats/prose/printable.h"

namespace cufit::formats {
namespace {

// A kubelet has 110 pods unless it is told otherwise; 4 MiB of empty ones would be two million.
constexpr size_t k_most_pods = 4096, k_most_pod_containers = 16384, k_most_pod_devices = 65536;
constexpr size_t k_longest_pod_name = 253;  // a DNS subdomain's
constexpr size_t k_longest_device_id = 128;
constexpr std::string_view k_claim_driver = "gpu.nvidia.com";

enum Wire : uint32_t { k_wire_varint = 0, k_wire_64 = 1, k_wire_bytes = 2, k_wire_32 = 5 };

struct ProtoField {
  uint32_t number = 0, wire = 0;
  std::string_view bytes;  // of k_wire_bytes
  uint64_t offset = 0;     // of `bytes` in the whole message
};

// The fields of one message, one after another. It ends at the first that cannot be read.
class ProtoReader {
 public:
  ProtoReader(std::string_view bytes, uint64_t offset, std::vector<Damage>& damages)
      : bytes_(bytes), offset_(offset), damages_(damages) {}

  bool next(ProtoField& field) {
    if (at_ == bytes_.size()) return false;
    const size_t begin = at_;
    uint64_t tag = 0, value = 0;
    if (!varint(tag)) return damaged(begin, "a field's number is cut short");
    field.number = static_cast<uint32_t>(tag >> 3);
    field.wire = static_cast<uint32_t>(tag & 7);
    if (tag > UINT32_MAX || field.number == 0) return damaged(begin, "no number of a field");
    switch (field.wire) {
      case k_wire_varint:
        return varint(value) || damaged(begin, "a number is cut short");
      case k_wire_64:
        return skip(8) || damaged(begin, "a number is cut short");
      case k_wire_32:
        return skip(4) || damaged(begin, "a number is cut short");
      case k_wire_bytes:
        if (!varint(value) || value > bytes_.size() - at_)
          return damaged(begin, format("field {} is longer than what is there", field.number));
        field.bytes = bytes_.substr(at_, static_cast<size_t>(value));
        field.offset = offset_ + at_;
        return skip(static_cast<size_t>(value));
      default:  // 3 and 4 are groups, which version 3 of the language does not have
        return damaged(begin, format("field {} is of no known kind", field.number));
    }
  }

 private:
  bool varint(uint64_t& value) {
    value = 0;
    for (uint32_t shift = 0; shift < 64 && at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool skip(size_t count) {
    if (count > bytes_.size() - at_) return false;
    at_ += count;
    return true;
  }
  bool damaged(size_t at, std::string what) {
    damages_.push_back({offset_ + at, std::move(what)});
    return false;
  }

  std::string_view bytes_;
  uint64_t offset_;
  size_t at_ = 0;
  std::vector<Damage>& damages_;
};

// Fills a PodResources. Each level has its own function: the depth is that of the schema, whatever the bytes say.
class PodResourcesReader {
 public:
  explicit PodResourcesReader(PodResources& out) : out_(out) {}

  void read_answer(std::string_view message) {
    ProtoReader fields(message, 0, out_.damages);
    for (ProtoField field; is_whole() && fields.next(field);)
      if (is_bytes(field, 1)) read_pod(field);
  }

 private:
  void read_pod(const ProtoField& of) {
    if (!may_add(out_.pods.size(), k_most_pods, of, "pods")) return;
    NodePod& pod = out_.pods.emplace_back();
    ProtoReader fields(of.bytes, of.offset, out_.damages);
    for (ProtoField field; is_whole() && fields.next(field);) {
      if (is_bytes(field, 1)) pod.name = printable(field.bytes, k_longest_pod_name);
      if (is_bytes(field, 2)) pod.name_space = printable(field.bytes, k_longest_pod_name);
      if (is_bytes(field, 3)) read_container(field, pod);
    }
  }

  void read_container(const ProtoField& of, NodePod& pod) {
    if (!may_add(containers_++, k_most_pod_containers, of, "containers")) return;
    PodContainer& container = pod.containers.emplace_back();
    ProtoReader fields(of.bytes, of.offset, out_.damages);
    for (ProtoField field; is_whole() && fields.next(field);) {
      if (is_bytes(field, 1)) container.name = printable(field.bytes, k_longest_pod_name);
      if (is_bytes(field, 2)) read_devices(field, container);
      if (is_bytes(field, 5)) read_claim(field, container);
    }
  }

  // The resource's name may follow its devices: a message's fields have no order.
  void read_devices(const ProtoField& of, PodContainer& container) {
    std::string resource;
    std::vector<PodDevice> devices;
    ProtoReader fields(of.bytes, of.offset, out_.damages);
    for (ProtoField field; is_whole() && fields.next(field);) {
      if (is_bytes(field, 1)) resource = printable(field.bytes, k_longest_pod_name);
      if (!is_bytes(field, 2)) continue;
      if (!may_add(devices_++, k_most_pod_devices, field, "devices")) return;
      devices.push_back({{}, printable(field.bytes, k_longest_device_id)});
    }
    if (!starts_with(resource, "nvidia.com/")) return;
    for (PodDevice& device : devices) {
      device.resource = resource;
      container.devices.push_back(std::move(device));
    }
  }

  void read_claim(const ProtoField& of, PodContainer& container) {
    ProtoReader fields(of.bytes, of.offset, out_.damages);
    for (ProtoField field; is_whole() && fields.next(field);)
      if (is_bytes(field, 4)) read_claim_device(field, container);
  }

  void read_claim_device(const ProtoField& of, PodContainer& container) {
    if (!may_add(devices_++, k_most_pod_devices, of, "devices")) return;
    PodDevice device;
    ProtoReader fields(of.bytes, of.offset, out_.damages);
    for (ProtoField field; is_whole() && fields.next(field);) {
      if (is_bytes(field, 2)) device.resource = printable(field.bytes, k_longest_pod_name);
      if (is_bytes(field, 4)) device.id = printable(field.bytes, k_longest_device_id);
    }
    if (device.resource == k_claim_driver) container.devices.push_back(std::move(device));
  }

  bool is_bytes(const ProtoField& field, uint32_t number) {
    if (field.number != number) return false;
    if (field.wire == k_wire_bytes) return true;
    out_.damages.push_back({field.offset, format("field {} is of another kind", number)});
    return false;
  }

  bool may_add(size_t have, size_t most, const ProtoField& at, const char* what) {
    if (have < most) return true;
    out_.damages.push_back({at.offset, format("more than {} {}", most, what)});
    return false;
  }

  // After the first damage the rest is noise, or another schema.
  bool is_whole() const { return out_.damages.empty(); }

  PodResources& out_;
  size_t containers_ = 0, devices_ = 0;
};

// "3b1ba5c4-0a1c-4ffb-8bd0-0e0c5d8e9b60"
bool is_uuid_text(std::string_view text) {
  if (text.size() != 36) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
    const char c = text[i];
    const bool is_digit =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (is_dash ? c != '-' : !is_digit) return false;
  }
  return true;
}

// "MIG-GPU-UUID/7/0": GPU instance and compute instance, as drivers before 470 name them.
bool is_old_instance(std::string_view id) {
  if (!starts_with(id, "MIG-GPU-")) return false;
  const std::vector<std::string_view> parts = split(id.substr(8), '/');
  return parts.size() == 3 && is_uuid_text(parts[0]) && parse_uint(parts[1]) &&
         parse_uint(parts[2]);
}

std::optional<uint32_t> minor_of(std::string_view text) {
  const std::optional<uint64_t> number = parse_uint(text);
  if (!number || *number > 255) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

}  // namespace

Result<std::string_view> grpc_message(std::string_view body) {
  if (body.size() < 5) return fail(Code::malformed, "no gRPC message in the answer");
  if (body[0] != 0) return fail(Code::unsupported, "the gRPC message is compressed");
  uint32_t length = 0;
  for (size_t i = 1; i < 5; ++i) length = length << 8 | static_cast<uint8_t>(body[i]);
  body.remove_prefix(5);
  if (length > body.size()) return fail(Code::malformed, "the gRPC message is cut short");
  if (length < body.size()) return fail(Code::malformed, "bytes follow the gRPC message");
  return body;
}

PodResources parse_pod_resources(std::string_view message) {
  PodResources out;
  PodResourcesReader(out).read_answer(message);
  return out;
}

// NVIDIA's device plugin says the UUID, and "::N" behind it for the Nth share of a GPU (time slicing, MPS). GKE's says the
// device file, "nvidia0" and "nvidia0/vgpu1" for a share; of its instances, "nvidia0/gi1", NVML's UUID is not told. NVIDIA's
// driver for claims says "gpu-0" with the number of the device file. Other plugins have an id that does not tell which GPU a
// pod got (HAMi's "GPU-UUID-3" is chosen later by its scheduler).
NamedGpu gpu_of_device(const PodDevice& device) {
  std::string_view id = device.id;
  if (device.resource == k_claim_driver)
    return starts_with(id, "gpu-") ? NamedGpu{{}, minor_of(id.substr(4))} : NamedGpu{};
  if (starts_with(id, "nvidia")) {
    id.remove_prefix(6);
    const size_t share = id.find("/vgpu");
    if (share != std::string_view::npos && !parse_uint(id.substr(share + 5))) return {};
    return {{}, minor_of(id.substr(0, share))};
  }
  if (const size_t share = id.find("::"); share != std::string_view::npos) {
    if (!parse_uint(id.substr(share + 2))) return {};
    id = id.substr(0, share);
  }
  const bool is_new =
      (starts_with(id, "GPU-") || starts_with(id, "MIG-")) && is_uuid_text(id.substr(4));
  if (is_new || is_old_instance(id)) return {std::string(id), std::nullopt};
  return {};
}

}  // namespace cufit::formats

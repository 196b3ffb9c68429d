// SPDX-License-Identifier: Apache-2.0
#include "formats/system/quota_domain.h"

#include <cstring>

#include "base/abi/quota_domain.h"
#include "base/format.h"
#include "formats/system/fixed_text.h"

namespace cufit::formats {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool read_uuid(std::string_view text, uint8_t (&out)[16]) {
  if (text.size() != 40 || (text.substr(0, 4) != "GPU-" && text.substr(0, 4) != "MIG-"))
    return false;
  size_t digits = 0;
  for (size_t i = 4; i < text.size(); ++i) {
    size_t at = i - 4;
    if (at == 8 || at == 13 || at == 18 || at == 23) {
      if (text[i] != '-') return false;
      continue;
    }
    int value = hex_value(text[i]);
    if (value < 0) return false;
    out[digits / 2] = static_cast<uint8_t>(digits % 2 ? out[digits / 2] | value : value << 4);
    ++digits;
  }
  return digits == 32;
}

Result<cufit_domain_device> device_row(const QuotaDevice& device) {
  cufit_domain_device row{};
  if (!device.uuid.empty() && !read_uuid(device.uuid, row.uuid))
    return fail(Code::usage, format("{} is no UUID of a GPU", device.uuid));
  if (device.pci.size() >= sizeof row.pci)
    return fail(Code::usage, format("{} is no PCI address", device.pci));
  if (device.uuid.empty() && device.pci.empty())
    return fail(Code::usage, "a GPU without UUID and PCI address");
  std::memcpy(row.pci, device.pci.data(), device.pci.size());
  row.limit_bytes = device.limit_bytes;
  row.total_bytes = device.total_bytes;
  row.context_bytes = device.context_bytes;
  row.flags = device.uuid.substr(0, 4) == "MIG-" ? CUFIT_DOMAIN_DEVICE_MIG : 0;
  row.ready = 1;
  return row;
}

QuotaDevice device_of(const cufit_domain_device& row) {
  QuotaDevice out;
  out.uuid = gpu_uuid_text(row.uuid, (row.flags & CUFIT_DOMAIN_DEVICE_MIG) != 0);
  out.pci = fixed_text(row.pci, sizeof row.pci - 1);
  out.limit_bytes = row.limit_bytes;
  out.total_bytes = row.total_bytes;
  out.context_bytes = row.context_bytes;
  out.peak_bytes = row.peak_bytes;
  out.refusals = row.refusals;
  out.driver_refusals = row.driver_refusals;
  out.spilled_bytes = row.spilled_bytes;
  return out;
}

uint64_t sum(uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

QuotaProcess process_of(const cufit_domain_slot& slot, uint32_t index,
                        const std::vector<uint32_t>& rows) {
  QuotaProcess out;
  out.lock_offset = CUFIT_DOMAIN_HEADER_BYTES + uint64_t{index} * CUFIT_DOMAIN_SLOT_BYTES;
  out.pid = slot.pid;
  out.start_ticks = slot.start_ticks;
  out.pid_namespace = slot.pid_namespace;
  out.name = fixed_text(slot.name, sizeof slot.name);
  for (uint32_t row : rows) out.used_bytes.push_back(slot.used[row]);
  return out;
}

Result<void> check_header(const cufit_domain_header& header, size_t size) {
  if (header.version != CUFIT_DOMAIN_VERSION)
    return fail(Code::unsupported, format("a quota domain of version {}", header.version));
  if (header.header_bytes != CUFIT_DOMAIN_HEADER_BYTES ||
      header.slot_bytes != CUFIT_DOMAIN_SLOT_BYTES || header.slot_count == 0 ||
      header.slot_count > CUFIT_DOMAIN_MAX_SLOTS)
    return fail(Code::malformed, "a quota domain with sizes that it cannot have");
  if (CUFIT_DOMAIN_HEADER_BYTES + size_t{header.slot_count} * CUFIT_DOMAIN_SLOT_BYTES > size)
    return fail(Code::malformed, format("a quota domain that ends at byte {}", size));
  return {};
}

}  // namespace

Result<std::string> make_quota_domain(const QuotaDomain& domain) {
  if (domain.devices.size() > CUFIT_DOMAIN_DEVICES)
    return fail(Code::usage,
                format("{} GPUs, more than {}", domain.devices.size(), CUFIT_DOMAIN_DEVICES));
  if (domain.slot_count == 0 || domain.slot_count > CUFIT_DOMAIN_MAX_SLOTS)
    return fail(Code::usage, format("room for {} processes", domain.slot_count));
  cufit_domain_header header{};
  std::memcpy(header.magic, CUFIT_DOMAIN_MAGIC, 8);
  header.version = CUFIT_DOMAIN_VERSION;
  header.header_bytes = CUFIT_DOMAIN_HEADER_BYTES;
  header.slot_count = domain.slot_count;
  header.slot_bytes = CUFIT_DOMAIN_SLOT_BYTES;
  header.flags = (domain.nvml_own_process ? CUFIT_DOMAIN_NVML_OWN_PROCESS : 0) |
                 (domain.charge_managed ? CUFIT_DOMAIN_CHARGE_MANAGED : 0);
  header.default_limit_bytes = domain.default_limit_bytes;
  header.default_context_bytes = domain.default_context_bytes;
  header.created_ns = domain.created_ns;
  std::string name = domain.name.substr(0, sizeof header.name - 1);
  std::memcpy(header.name, name.data(), name.size());
  for (size_t i = 0; i < domain.devices.size(); ++i) {
    CUFIT_TRY(row, device_row(domain.devices[i]));
    header.devices[i] = row;
  }
  std::string bytes(CUFIT_DOMAIN_HEADER_BYTES + size_t{domain.slot_count} * CUFIT_DOMAIN_SLOT_BYTES,
                    '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

Result<QuotaDomain> parse_quota_domain(std::string_view bytes) {
  cufit_domain_header header;
  if (bytes.substr(0, 8) != std::string_view(CUFIT_DOMAIN_MAGIC, 8))
    return fail(Code::malformed, "not the file of a quota domain");
  if (bytes.size() < sizeof header)
    return fail(Code::malformed, format("a quota domain that ends at byte {}", bytes.size()));
  std::memcpy(&header, bytes.data(), sizeof header);
  if (Result<void> good = check_header(header, bytes.size()); !good) return good.error();
  QuotaDomain out;
  out.name = fixed_text(header.name, sizeof header.name - 1);
  out.nvml_own_process = (header.flags & CUFIT_DOMAIN_NVML_OWN_PROCESS) != 0;
  out.charge_managed = (header.flags & CUFIT_DOMAIN_CHARGE_MANAGED) != 0;
  out.default_limit_bytes = header.default_limit_bytes;
  out.default_context_bytes = header.default_context_bytes;
  out.created_ns = header.created_ns;
  out.slot_count = header.slot_count;
  out.foreign = fixed_text(header.foreign, sizeof header.foreign);
  for (const auto& name : header.unknown) {
    if (name[0]) out.unknown.push_back(fixed_text(name, sizeof name));
  }
  std::vector<uint32_t> rows;
  for (uint32_t i = 0; i < CUFIT_DOMAIN_DEVICES; ++i) {
    if (header.devices[i].ready != 1) continue;
    rows.push_back(i);
    out.devices.push_back(device_of(header.devices[i]));
  }
  for (uint32_t i = 0; i < header.slot_count; ++i) {
    cufit_domain_slot slot;
    std::memcpy(&slot,
                bytes.data() + CUFIT_DOMAIN_HEADER_BYTES + size_t{i} * CUFIT_DOMAIN_SLOT_BYTES,
                sizeof slot);
    for (size_t d = 0; d < rows.size(); ++d)
      out.devices[d].used_bytes = sum(out.devices[d].used_bytes, slot.used[rows[d]]);
    if (slot.token != 0) out.processes.push_back(process_of(slot, i, rows));
  }
  return out;
}

}  // namespace cufit::formats

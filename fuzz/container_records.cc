// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/prose/printable.h"
#include "formats/system/cgroup_owner.h"
#include "formats/system/container_records.h"

namespace {

void check(const cufit::formats::ContainerNames& names) {
  for (const std::string* text :
       {&names.container, &names.pod, &names.pod_namespace, &names.pod_uid})
    if (text->size() > 253 || cufit::formats::printable(*text) != *text) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit::formats;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(parse_docker_config(text));
  check(parse_oci_config(text));
  check(parse_pod_log_folder(text));
  std::string id;
  check(parse_container_log_link(text, id));
  if (!id.empty() && !is_container_id(id)) __builtin_trap();
  for (const auto& [each, name] : parse_storage_containers(text))
    if (!is_container_id(each) || name.size() > 253) __builtin_trap();
  return 0;
}

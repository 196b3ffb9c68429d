// SPDX-License-Identifier: Apache-2.0
// The part of NVML's binary interface that cufit calls: layouts and numbers as NVIDIA's API
// reference publishes them, written down here because no header is needed at build time and several
// versions must work with one program. Used by nvml_query.cc and by the tests' stand-in library.
#pragma once

#include <cstdint>

namespace cufit::host::nvml {

using Device = void*;

enum Return : int {
  k_success = 0,
  k_uninitialized = 1,
  k_invalid_argument = 2,
  k_not_supported = 3,
  k_no_permission = 4,
  k_not_found = 6,
  k_insufficient_size = 7,
  k_timeout = 10,
  k_function_not_found = 13,
  k_corrupted_inforom = 14,
  k_gpu_is_lost = 15,
  k_reset_required = 16,
  k_operating_system = 17,
  k_argument_version_mismatch = 25,
  k_deprecated = 26,
  k_unknown = 999,
};

struct PciInfo {  // nvmlPciInfo_t; _v2 has other reserved fields after `subsystem`, the same before
  char bus_id_legacy[16];
  uint32_t domain, bus, device;
  uint32_t device_id, subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct Memory {                // nvmlMemory_t
  uint64_t total, free, used;  // used includes what the driver reserves
};
static_assert(sizeof(Memory) == 24);

struct MemoryV2 {  // nvmlMemory_v2_t
  uint32_t version;
  uint64_t total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40);
constexpr uint32_t k_memory_v2 = sizeof(MemoryV2) | 2u << 24;

struct TemperatureV1 {  // nvmlTemperature_v1_t, replaces nvmlDeviceGetTemperature
  uint32_t version;
  uint32_t sensor;
  int32_t temperature;
};
constexpr uint32_t k_temperature_v1 = sizeof(TemperatureV1) | 1u << 24;

struct Utilization {  // nvmlUtilization_t, per cent
  uint32_t gpu, memory;
};

// nvmlFieldValue_t. `value` is a union of `type`: 0 double, 1 unsigned int, 2 unsigned long, 3 unsigned long long, 4 long
// long, 5 int, 6 unsigned short.
struct FieldValue {
  uint32_t id, scope;
  int64_t timestamp_us, latency_us;
  int32_t type;
  int32_t result;
  uint64_t value;
};
static_assert(sizeof(FieldValue) == 40);
// NVML_FI_DEV_*, of nvml.h and nvidia-ml-py 13.615.
constexpr uint32_t k_field_power_violation = 74, k_field_thermal_violation = 75;  // ns
constexpr uint32_t k_field_memory_temperature = 82;                               // C
constexpr uint32_t k_field_nvlink_tx = 138,
                   k_field_nvlink_rx = 139;  // KiB, scope UINT32_MAX: all links
constexpr uint32_t k_field_pcie_tx = 197, k_field_pcie_rx = 198;  // bytes, driver 555 and later

constexpr uint32_t k_field_recovery_action = 230;  // an unsigned int, k_recovery_actions

constexpr uint32_t k_field_nvlink_speed = 90;  // MB/s of a link in one direction

struct FabricInfo {  // nvmlGpuFabricInfo_t; what follows it in later versions is not asked for
  unsigned char cluster_uuid[16];
  int32_t status;
  uint32_t clique_id;
  uint8_t state;
};
static_assert(sizeof(FabricInfo) == 28);

struct ProcessUse {  // nvmlProcessUtilizationSample_t, per cent
  uint32_t pid;
  uint64_t timestamp_us;
  uint32_t sm, memory, encoder, decoder;
};
static_assert(sizeof(ProcessUse) == 32);

struct EventData {  // nvmlEventData_t
  Device device;
  uint64_t type, data;  // data of an Xid: its number
  uint32_t gpu_instance, compute_instance;
};
static_assert(sizeof(EventData) == 32);
constexpr uint64_t k_event_xid = 8;  // nvmlEventTypeXidCriticalError

constexpr uint32_t k_clock_sm = 1, k_clock_memory = 2;            // nvmlClockType_t
constexpr uint32_t k_threshold_slowdown = 1;                      // nvmlTemperatureThresholds_t
constexpr uint32_t k_pcie_counter_tx = 0, k_pcie_counter_rx = 1;  // nvmlPcieUtilCounter_t

// NVML_VALUE_NOT_AVAILABLE: a process's memory under WSL, in some containers, on unified memory.
constexpr uint64_t k_not_available = ~uint64_t{0};
// NVML_NVLINK_MAX_LINKS of driver 615; older drivers refuse the numbers above theirs.
constexpr uint32_t k_max_links = 36;

struct Named {
  uint64_t value;
  const char* name;
};

// Bits of nvmlDeviceGetCurrentClocksEventReasons. 1 (idle) is left out: it is no throttling.
constexpr Named k_throttle_reasons[] = {
    {0x002, "applications_clocks_setting"},
    {0x004, "sw_power_cap"},
    {0x008, "hw_slowdown"},
    {0x010, "sync_boost"},
    {0x020, "sw_thermal_slowdown"},
    {0x040, "hw_thermal_slowdown"},
    {0x080, "hw_power_brake_slowdown"},
    {0x100, "display_clock_setting"},
    {0x200, "board_limit"},
    {0x400, "reliability"},
};

constexpr Named k_brands[] = {
    {0, "unknown"},     {1, "quadro"},      {2, "tesla"},       {3, "nvs"},
    {4, "grid"},        {5, "geforce"},     {6, "titan"},       {7, "nvidia_vapps"},
    {8, "nvidia_vpc"},  {9, "nvidia_vcs"},  {10, "nvidia_vws"}, {11, "nvidia_cloud_gaming"},
    {12, "quadro_rtx"}, {13, "nvidia_rtx"}, {14, "nvidia"},     {15, "geforce_rtx"},
    {16, "titan_rtx"},
};

// nvmlDeviceGpuRecoveryAction_t of nvidia-ml-py 13.615 and cuda.bindings' NVML.
constexpr Named k_recovery_actions[] = {
    {0, "none"},      {1, "reset"},           {2, "reboot"},
    {3, "drain_p2p"}, {4, "drain_and_reset"}, {5, "recover_imex_domain"},
    {6, "bus_reset"}, {7, "reboot"}};

constexpr Named k_fabric_states[] = {
    {0, "not_supported"}, {1, "not_started"}, {2, "in_progress"}, {3, "completed"}};

// nvmlGpuTopologyLevel_t, nvmlGpuP2PStatus_t, nvmlGpuP2PCapsIndex_t, nvmlIntNvLinkDeviceType_t of
// nvidia-ml-py 13.615.
constexpr Named k_topology_levels[] = {{0, "internal"},    {10, "single"}, {20, "multiple"},
                                       {30, "hostbridge"}, {40, "node"},   {50, "system"}};
constexpr Named k_p2p_states[] = {{0, "ok"},
                                  {1, "chipset_not_supported"},
                                  {2, "gpu_not_supported"},
                                  {3, "topology_not_supported"},
                                  {4, "disabled_by_regkey"},
                                  {5, "not_supported"},
                                  {6, "unknown"}};
constexpr uint32_t k_p2p_read = 0, k_p2p_nvlink = 2;
constexpr uint32_t k_remote_switch = 2;

constexpr Named k_compute_modes[] = {
    {0, "default"}, {1, "exclusive_thread"}, {2, "prohibited"}, {3, "exclusive_process"}};

}  // namespace cufit::host::nvml

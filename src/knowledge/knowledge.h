// SPDX-License-Identifier: Apache-2.0
// What is true of the world and not on the disk, as typed rows compiled from data/*.toml by
// tools/gen-tables. Every row carries its source in the TOML file; rows here keep the table's name
// so that a report can say which table spoke ("data/gpus.toml"). Look-ups are pure and return null
// when the table does not know.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/version.h"

namespace cufit::knowledge {

struct Gpu {
  std::string_view name;       // "GeForce RTX 3090"
  std::string_view nvml_name;  // "NVIDIA GeForce RTX 3090"
  std::string_view arch;       // "Ampere"
  std::string_view chip;       // "GA102"
  std::string_view cc;         // "8.6"
  double memory_gb;            // largest size sold
  double bandwidth_gbs;
  std::string_view segment;  // "consumer", "workstation", "datacenter", "embedded" (Jetson, GB10)
  uint32_t mig_max;
  std::string_view ecc;
  std::string_view pci_ids;  // space separated, lower case hex
};

struct TorchExtra {  // a package that does without a torch older than its extra "torch" asks for
  std::string_view package;
};
struct TorchFloor {  // from this release on the package takes a torch older than that as none
  std::string_view package, first, torch;
};
struct TorchPinner {  // a program whose releases each need one torch
  std::string_view package;
};
// Which machine code a capability takes (data/gpus.toml).
struct OwnCodeRow {
  std::string_view cc;  // runs code made for exactly it, which runs nowhere else
};
struct ArchFamilyRow {
  std::string_view arch, cc;  // code for the family of `arch` ("100f") runs on `cc` too
};
struct RenumberedArchRow {
  std::string_view before, cc;  // one chip: its number in older toolkits, and now
};
struct PciBlock {
  std::string_view prefix, chip, cc;
};  // "220" -> GA102, 8.6
struct ToolkitRow {
  std::string_view version, linux_driver;
};  // "12.4.1" -> "550.54.15"; empty = not known
struct BranchRow {
  uint32_t branch;
  std::string_view cuda;
};                        // 535 -> "12.2"
struct SupportedBranch {  // maintained, and not for a few months only
  uint32_t branch;
  std::string_view kind, until;  // "long-term" or "production"; "2028-06"
};
struct FamilyFloor {
  uint32_t cuda_major;
  std::string_view linux_min;
};                                     // 12 -> "525.60.13"
struct DriverWindow {                  // which branches drive which capability
  std::string_view arch, cc;           // one row per capability
  uint32_t first_branch, last_branch;  // 0 = open end
  std::string_view kernel_module;      // "either", "open", "proprietary"
};
struct NvccArch {  // "120": from which toolkit on, and up to which, nvcc makes code for it
  std::string_view arch, first, last;  // "12.8"; empty = open end
};
struct NvlinkRate {  // nvmlNvlinkVersion_t -> "4", MB/s of one link in one direction
  uint32_t nvml;
  std::string_view name;
  uint32_t mbps;
};
struct PcieRate {  // MB/s of one lane in one direction
  uint32_t gen, mbps;
};
struct CardNvlinkRow {   // MB/s of all links of a card in one direction, to the others of its node
  std::string_view gpu;  // Gpu::name
  uint32_t mbps;
};
struct CardPcieRow {  // the generation of PCIe that cards of a compute capability have
  std::string_view cc;
  uint32_t gen;
};
struct PtxIsaRow {
  std::string_view isa, cuda;
};  // "8.8" -> "12.9"
struct ArchSet {
  std::string_view id, platform;
  std::string_view sm, ptx;
};  // space separated "7.5 8.0"
struct WheelVariant {
  std::string_view torch, tag, cudnn, nccl, arch_set;
  int cxx11_abi;
  std::string_view glibc;
};
struct TorchRelease {
  std::string_view version, date, torchvision, torchaudio, triton, python, default_linux_x86_64;
  std::string_view default_python;  // Pythons of the default index, where they are fewer
};
struct CudaTag {
  std::string_view tag, cuda, cudart_soname, linux_min, first_torch, last_torch;
};
// A package built against one torch (data/extensions.toml).
struct ExtensionRow {
  std::string_view package, version;
  std::string_view torch;   // "==2.7.1", ">=2.10", or minors: "2.4 2.5"
  std::string_view cuda;    // space separated "11.8 12"; a major alone fits all of it; empty = any
  std::string_view cc_min;  // lowest compute capability that it has code for
  std::string_view python;  // space separated minors; empty = any
  std::string_view python_min;
  std::string_view default_cuda;  // of the default index's file; empty = as `cuda` says
  std::string_view glibc;         // oldest C library of its file; empty = not known
  // "release": a prebuilt file of the project's own releases; "source": built on the machine, with
  // torch already installed; empty = an index has it.
  std::string_view origin;
};
// Which distribution brings a module with compiled CUDA code (data/extension_modules.toml).
struct ExtensionModuleRow {
  std::string_view package;  // "flash-attn"
  std::string_view import;   // "flash_attn"
  std::string_view modules;  // space separated, lower case: "flash_attn_2_cuda flash_attn_cuda"
  std::string_view also;     // other distributions that bring it, space separated
  // What pip builds it from: empty = its name, "git+...", or "wheels", "none" (nothing that a plain
  // command builds).
  std::string_view origin;
};
struct Aarch64Row {  // torch minors, both ends included
  std::string_view first_torch, last_torch, tags;
  std::string_view default_tag;  // of the default Python index; empty = a CPU wheel there
};
// What codes mean, in English (`meaning`) and in Chinese (`zh`).
struct CodeRow {
  int code;
  std::string_view name, meaning, zh;
};  // CUresult, nvmlReturn_t
struct XidRow {
  uint32_t number;
  std::string_view meaning, finding, zh;
};  // finding: root-cause id or empty
struct LibraryCodeRow {
  std::string_view library;  // "cudnn8", "cudnn9", "cublas", "nccl"
  int code;
  std::string_view name, meaning, finding;  // finding: the usual cause or empty
  std::string_view zh;
};
// What a process left behind: negative as Python tells a signal, 128 + signal as shells do,
// NTSTATUS.
struct ExitCodeRow {
  int64_t code;
  std::string_view signal, name, meaning, finding, zh;
};
struct GpuMemoryRow {
  std::string_view gpu;  // Gpu::name
  double total_gib;      // as CUDA tells it, the lowest seen
  int64_t reports;
  std::string_view source;
};
struct GpuContextRow {
  std::string_view cc;
  int64_t mib;  // of one process outside PyTorch's allocator, the most seen
  int64_t reports;
};
struct NcclMemoryRow {  // data/gpu_memory.toml, of one process
  std::string_view nccl;
  int64_t ranks;  // up to so many
  int64_t kernels_mib, send_kernels_mib;  // once: with the first communicator, the first send
  int64_t communicator_mib, rings_mib;    // each, and its first collective
  int64_t send_mib, receive_mib;          // for each rank that it sends to, receives from
  int64_t nvls_mib, nvls_later_mib;  // for each rank of a node; from compute capability 10.0 on
  int64_t net_mib;                   // where there are several nodes
  std::string_view basis;            // "measured", "reckoned"
};
// What libraries ask for through PyTorch's allocator (data/workspaces.toml).
struct CublasWorkspaceRow {
  std::string_view cc_first, cc_last;  // both included
  int64_t bytes, upper_bytes;          // of one thread
  std::string_view basis;              // "source", "measured", "bound"
};
struct CublasltWorkspaceRow {
  std::string_view torch_first, torch_last;  // minors, both included
  int64_t bytes;
  std::string_view basis;
};
struct ConvWorkspaceRow {
  std::string_view kind;
  int64_t io, weights;  // how often the bytes of input and output, of the weights
  int64_t fixed;
  int64_t split_weights, split_most;  // min(split_weights * weights, split_most) bytes more
  int64_t per_sample;                 // 1: the weights once per sample more
  int64_t upper_io, upper_weights, upper_fixed;
  std::string_view basis;
};
struct ConvTileRow {
  int64_t knob;           // TILE_SIZE of one of cuDNN's engines
  int64_t rows, columns;  // of a thread block's part of the result
  std::string_view basis;
};
struct ConvClusterRow {
  int64_t blocks;   // of a cluster
  int64_t at_once;  // that run on 132 multiprocessors
  std::string_view basis;
};
// A question of data/conv_choice.toml, or where `takes` is not empty an answer.
struct ConvChoiceRow {
  std::string_view pass, feature;
  int64_t most, other;
  std::string_view takes;
};
// A GPU as cuDNN wants it described.
struct GpuPropertiesRow {
  std::string_view cc;
  int64_t multiprocessors;
  int64_t shared_kib,
      reserved_shared;          // of a block: KiB that it may ask for, bytes that CUDA takes
  int64_t blocks, threads;      // of a multiprocessor
  int64_t clock, memory_clock;  // kHz
  int64_t l2_kib;
};
// What cuDNN needs to run a recurrent layer: src/fit/workspaces/rnn_workspace.cc has the sum.
struct RnnCellRow {
  int64_t mode;            // cudnnRNNMode_t
  int64_t gates;           // products of one step
  int64_t forward_states;  // hidden states per layer that the pass keeps beside the outputs
  int64_t backward_states, padded_states;
  int64_t persistent_outputs;                   // more outputs that persistent kernels keep
  int64_t persistent_forward, persistent_back;  // greatest hidden size that PyTorch takes them for
};
struct UnseenRequestsRow {
  std::string_view of;  // "reserved", "allocated"
  int64_t per_mille, bytes;
  std::string_view basis;
};
// Multi-Instance GPU (data/mig.toml).
struct MigCardRow {
  std::string_view gpu;     // Gpu::name
  std::string_view table;   // of its profiles
  std::string_view driver;  // the first that divides it
  int64_t empty_mib;        // that an instance holds before any process
};
struct MigProfileRow {
  std::string_view table, name;  // "3g.40gb"; variants end in "+me", "+gfx", "-me"
  int64_t id;                    // as `nvidia-smi mig -cgi` takes it
  int64_t slices;                // of compute
  int64_t size;                  // units of memory
  std::string_view starts;       // units at which one may begin, space separated
  int64_t most;                  // at once
  int64_t mib;                   // the lowest seen
  int64_t sm;                    // 0 = not read
  std::string_view basis;        // "seen", "bound"
};
struct MigLimitRow {  // what MIG takes away: message mig.limit.<id>
  std::string_view id, source;
};
struct QuotaSinceRow {  // data/quota.toml: "kernel" -> "615"
  std::string_view id, version;
};
struct QuotaSizeRow {  // data/quota.toml: "least_context"
  std::string_view id;
  int64_t mib;
};
struct QuotaShimRow {     // another's library between programs and the driver
  std::string_view file;  // how its name begins: "libvgpu.so"
  std::string_view name;  // "HAMi-core"
};
// For the relative time of a training step (data/step_time.toml). TFLOPS.
struct GpuComputeRow {
  std::string_view gpu;     // Gpu::name
  double half, tf32, fp32;  // tf32 0: no such units
};
struct StepTimeRow {
  std::string_view of;
  double value;
};
// What engines of inference take, and what they say where that is too much (data/serving.toml).
struct ServingSizeRow {
  std::string_view engine, of;
  double value, upper;
};
struct ServingMessageRow {
  std::string_view engine, id, version, text;
};
struct ForwardCompat {
  std::string_view cuda;
  std::string_view branches;
};  // space separated branches
struct TextPair {
  std::string_view key, en, zh;
};

// A text in Knowledge::pool: tens of thousands of pointers would have to be relocated at every
// start of the program, offsets need nothing.
struct Pooled {
  uint32_t begin = 0, size = 0;
};

// One pattern of signatures and clues: RE2, any case. What tells a text without a match from one
// that needs the regular expression:
// `plain`: the whole pattern where it is nothing but text, in lower case, '\b' for a word's edge.
// `shape`: the literals of every match in order, a line each: how many bytes lie between it and the
// one before at most, then a tab and an alternative, as often as there are alternatives; '\x01' in
// them is any digit, '\b' a word's edge.
struct PatternRow {
  Pooled re, plain, shape;
};
// A word in lower case, and the patterns whose every match holds it: in Knowledge::word_patterns.
struct WordRow {
  Pooled word;
  uint32_t begin, count;
};
// A thing a text can say ("the program runs under WSL"). Names that begin with oom_ are computed
// from the numbers of an out-of-memory message and have no patterns.
struct ClueRow {
  std::string_view id, en, zh;
  std::span<const uint32_t> patterns;  // in Knowledge::patterns
  bool gate;  // too common to be shown as evidence: "something fails", "the text is about memory"
};
// One signature: any of the patterns (or none are needed), and all clues of `with` ("!x": not x).
struct SignRow {
  std::span<const uint32_t> any;  // in Knowledge::patterns
  std::span<const std::string_view> with;
  int weight;                     // 1..99: how strongly it speaks for the cause
  bool certain;                   // nothing else prints it
  std::string_view variant = {};  // of the cause's texts: "mkl" for "next.text.mkl"
};

// What a text fills into a cause's texts (explain/captures.h): the named groups of the pattern
// become arguments, and `variant` chooses the texts. No pattern: the clues decide alone.
struct CaptureRow {
  std::string_view pattern;                // RE2, ready to use: a blank of the file is white space
  std::span<const std::string_view> with;  // clues that must be there ("!x": must not)
  std::string_view variant = {};           // of the cause's texts: "gcc" for "next.text.gcc"
  // Words in lower case, parted by `|`: one of them is in every match, in some case. Empty: none are known.
  std::string_view words = {};
};

// Which words and clues speak for which cause, learned from labelled reports
// (learn/learn.py): the log-odds of a cause are its bias plus the sum of weight /
// weight_scale over the words of a text, each by its rarity; the rarities of a text's words are
// scaled to length 1, those of its clues ("@oom") to length clue_length.
struct VocabularyCause {
  std::string_view id;  // of a finding, or a question of yes and no: "none", "memory"
  double bias;
  bool memory = false;  // of the causes that "memory" asks for; weighed only against each other
};
struct VocabularyWeight {
  uint16_t cause;  // in Knowledge::vocabulary_causes
  int16_t weight;
};
struct VocabularyWord {  // sorted by word, bytes compared
  Pooled word;
  uint16_t rarity;
  uint32_t begin, count;  // in Knowledge::vocabulary_weights
};
// Texts of one finding. Keys: "title", "why", "why.<variant>", "next", "next.<variant>", "rule"
// (optional, the correct rule where popular advice is wrong), "why.text" and
// "next.text" (when only a pasted text is known), "decide" (what would tell it from its rivals).
struct FindingTexts {
  std::string_view id, category,
      action;  // action: none|monitor|configure|reinstall|update-driver|reset|isolate|...
  std::span<const TextPair> texts;
  // How a text gives this cause away (explain/); empty for findings that only facts can show.
  std::span<const SignRow> signs;
  std::span<const std::string_view> against;   // clues that rule the cause out
  std::span<const std::string_view> explains;  // causes that are only an echo of this one
  std::string_view source;
  // Lists of clues ("!x": not x). Where all of one hold, the words of the text count less for this
  // cause, or for all causes but those that are sure, too.
  std::span<const std::span<const std::string_view>> doubted = {}, sure = {};
  std::span<const CaptureRow> captures = {};  // those that go first stand first
};

// A metric of `cufit exporter` (data/metrics.toml).
struct MetricRow {
  std::string_view name, type, unit;  // type: "gauge", "counter"; unit: "bytes", ..., "none"
  std::string_view labels;            // names, blanks between, as they are printed
  std::string_view values;            // of the last label, where they are few
  std::string_view help;
};
// What stands behind a metric of DCGM's name (data/dcgm_metrics.toml).
struct DcgmValue {
  std::string_view metric, value;  // value: a member of facts::SampledGpu, or "last_xid"
  uint32_t times, per;             // 0: not converted
};
// What deserves an alarm (data/alert_rules.toml, which says what each field is).
struct AlertRule {
  std::string_view id, severity, hold;  // hold: how long it must be true, "5m"
  std::string_view show;                // what {value} is: "count", "percent", "bytes", "duration"
  std::string_view expr;                // PromQL
  std::string_view summary, summary_zh, description, description_zh, runbook;
};
// take(metric{label=values}[window]) / over_take(over[over_window]) compare threshold. All of a
// rule's hold for one GPU.
struct AlertCondition {
  std::string_view rule, metric, label, values, take, window;
  std::string_view over, over_take, over_window;  // empty: not divided
  std::string_view compare;                       // ">" or "<"
  double threshold;
};
struct AlertXid {  // which Xid raises which rule
  uint32_t number;
  std::string_view rule, why, zh;
};
// What a node is judged by (data/health.toml, which says what each field is).
struct HealthRule {
  std::string_view id, level, action, meaning, zh, source;
};
struct HealthXid {  // what is special of an Xid
  uint32_t number;
  std::string_view action, past;
};
struct HealthFinding {  // what a finding of doctor's counts as; variant: empty = all
  std::string_view finding, variant, rule, action, as;
};
// The Grafana board (data/dashboard.toml), from top to bottom.
struct BoardPanel {
  std::string_view id, kind, title, zh, unit;
  uint32_t width, height;
};
struct BoardQuery {
  std::string_view panel, expr, legend;
};
struct BoardColumn {  // of tables: a label or a query's value
  std::string_view field, title, zh, unit;
};

// All tables. `builtin()` is the compiled copy; the struct exists so that tests can pass a smaller
// world.
struct Knowledge {
  std::span<const Gpu> gpus;
  std::span<const OwnCodeRow> own_code = {};
  std::span<const ArchFamilyRow> arch_families = {};
  std::span<const RenumberedArchRow> renumbered_archs = {};
  std::span<const PciBlock> pci_blocks;
  std::span<const ToolkitRow> toolkits;
  std::span<const BranchRow> branches;
  std::span<const SupportedBranch> supported_branches;  // oldest first
  std::span<const FamilyFloor> floors;
  std::span<const DriverWindow> windows;
  std::span<const NvccArch> nvcc_archs = {};
  std::span<const PtxIsaRow> ptx_isas;
  std::span<const ArchSet> arch_sets;
  std::span<const WheelVariant> wheel_variants;
  std::span<const TorchRelease> torch_releases;
  std::span<const CudaTag> cuda_tags;
  std::span<const TorchPinner> torch_pinners = {};
  std::span<const TorchExtra> torch_extras = {};
  std::span<const TorchFloor> torch_floors = {};
  std::span<const ExtensionRow> extensions;
  std::span<const ExtensionModuleRow> extension_modules;
  std::span<const Aarch64Row> aarch64_wheels;
  std::span<const CodeRow> cuda_codes;
  std::span<const CodeRow> nvml_codes;
  std::span<const XidRow> xids;
  std::span<const LibraryCodeRow> library_codes;
  std::span<const ExitCodeRow> exit_codes;
  std::span<const GpuMemoryRow> gpu_memory;
  std::span<const GpuContextRow> gpu_context;
  std::span<const NcclMemoryRow> nccl_memory;
  std::span<const CublasWorkspaceRow> cublas_workspaces;
  std::span<const CublasltWorkspaceRow> cublaslt_workspaces;
  std::span<const ConvWorkspaceRow> conv_workspaces;
  std::span<const ConvTileRow> conv_tiles;
  std::span<const ConvClusterRow> conv_clusters;
  std::span<const ConvChoiceRow> conv_choices;
  std::span<const GpuPropertiesRow> gpu_properties;
  std::span<const RnnCellRow> rnn_cells;
  std::span<const UnseenRequestsRow> unseen_requests;
  std::span<const MigCardRow> mig_cards = {};
  std::span<const MigProfileRow> mig_profiles = {};
  std::span<const NvlinkRate> nvlink_rates = {};
  std::span<const PcieRate> pcie_rates = {};
  std::span<const CardNvlinkRow> card_nvlink = {};
  std::span<const CardPcieRow> card_pcie = {};
  std::span<const MigLimitRow> mig_limits = {};
  std::span<const QuotaSinceRow> quota_since_rows = {};
  std::span<const QuotaSizeRow> quota_sizes = {};
  std::span<const QuotaShimRow> quota_shims = {};
  std::span<const GpuComputeRow> gpu_compute;
  std::span<const StepTimeRow> step_time;
  std::span<const ServingSizeRow> serving_sizes = {};
  std::span<const ServingMessageRow> serving_messages = {};
  std::span<const ForwardCompat> forward_compat;
  std::span<const MetricRow> metrics = {};
  std::span<const MetricRow> dcgm_metrics = {};
  std::span<const DcgmValue> dcgm_values = {};
  std::span<const AlertRule> alert_rules = {};
  std::span<const AlertCondition> alert_conditions = {};
  std::span<const AlertXid> alert_xids = {};
  std::span<const HealthRule> health_rules = {};
  std::span<const HealthFinding> health_findings = {};
  std::span<const HealthXid> health_xids = {};
  std::span<const BoardPanel> board_panels = {};
  std::span<const BoardQuery> board_queries = {};
  std::span<const BoardColumn> board_columns = {};
  std::span<const FindingTexts> findings;
  std::span<const ClueRow> clues;
  std::string_view pool;  // what Pooled texts are in
  std::span<const PatternRow> patterns;
  std::span<const WordRow> words;
  std::span<const uint32_t> word_patterns;
  std::span<const VocabularyCause> vocabulary_causes;
  std::span<const VocabularyWord> vocabulary_words;
  std::span<const VocabularyWeight> vocabulary_weights;
  double weight_scale = 1, clue_length = 0;
  std::span<const TextPair> messages;  // every other text: "link.torch.cubin"
  std::string_view date = {};  // of the newest row: "2026-11-28"; what came later is unknown
  bool updated = false;        // the tables that change with releases are of a file of the user

  static const Knowledge& builtin();

  std::string_view text(Pooled where) const { return pool.substr(where.begin, where.size); }
  const Gpu* find_gpu(
      std::string_view name) const;  // by name, NVML name, or without vendor words; any case
  // All that the name can mean, where it leaves the memory open: "RTX 3060" was sold with 8 and with
  // 12 GB, "A100" as PCIe and SXM4 with 40 and 80. One row where it is clear; empty = unknown.
  std::vector<const Gpu*> gpus_meant(std::string_view name) const;
  const Gpu* find_gpu_by_pci(std::string_view device_id) const;  // "2204"
  std::string_view find_cc_by_pci(
      std::string_view device_id) const;  // exact row, else block; empty = unknown
  // The maker that a GPU's name speaks of where it is not NVIDIA: "AMD" of "RX 7900 XTX"; empty.
  static std::string_view other_maker(std::string_view name);
  std::vector<std::string> nearest_gpus(std::string_view name, size_t count) const;
  // Whether it takes only machine code made for exactly it, as Tegra up to Orin does.
  bool has_own_code(ComputeCapability cc) const;
  // The number that newer toolkits give to the same chip: 11.0 for 10.1; else `cc` itself.
  ComputeCapability renumbered(ComputeCapability cc) const;
  // Whether code for the family of `family` ("100f") runs on `device`.
  bool in_family(ComputeCapability family, ComputeCapability device) const;
  const BranchRow* find_branch(uint32_t branch) const;  // exact, else nearest older branch
  // The oldest maintained branch that is at least `floor`; the floor itself where none is.
  uint32_t supported_branch(uint32_t floor) const;
  std::optional<Version> family_floor(uint32_t cuda_major) const;
  std::optional<Version> full_driver(
      const Version& cuda) const;  // driver of that toolkit's release ("12.8")
  // The first driver that compiles PTX of this CUDA and has its calls: that of the minor's first
  // release. Updates ("12.8.1") come with newer drivers, but neither with another PTX ISA nor with
  // other calls.
  std::optional<Version> ptx_driver(const Version& cuda) const {
    return full_driver(Version{{cuda.part(0), cuda.part(1)}});
  }
  // CUDA version that a driver reports: by its branch. nullopt for a branch older than the table.
  std::optional<Version> driver_cuda(const Version& driver) const;
  const DriverWindow* find_window(ComputeCapability cc) const;
  std::optional<Version> cuda_for_ptx(const Version& isa) const;   // first CUDA that accepts it
  const CudaTag* find_cuda_tag(std::string_view tag) const;        // "cu126"
  const TorchRelease* find_torch(std::string_view version) const;  // "2.11.0"
  Version newest_torch() const;                                    // of torch_releases
  std::vector<const WheelVariant*> wheels_of(std::string_view torch) const;
  // Newest torch release that has a wheel whose architectures serve `cc` and whose CUDA family runs
  // on `driver` (nullopt = newest driver). Linux x86-64.
  struct Pick {
    std::string torch, tag;
  };
  std::optional<Pick> newest_wheel_for(ComputeCapability cc, std::optional<Version> driver) const;
  // By a module's name, of which "mmcv._ext" is "mmcv"; by a distribution's, normalised or not.
  const ExtensionModuleRow* find_extension_module(std::string_view module) const;
  const ExtensionModuleRow* find_extension_package(std::string_view package) const;
  const CodeRow* find_cuda_code(int code) const;
  const CodeRow* find_nvml_code(int code) const;
  const XidRow* find_xid(uint32_t number) const;
  // By the name in a message ("CUDNN_STATUS_NOT_INITIALIZED"), of the newest library that has it.
  const LibraryCodeRow* find_library_code(std::string_view name) const;
  const ExitCodeRow* find_exit_code(int64_t code) const;
  // "615" of "kernel" (data/quota.toml); empty = no such row.
  std::string_view quota_since(std::string_view id) const;
  uint64_t quota_size_bytes(std::string_view id) const;  // 0 = no such row
  const GpuContextRow* find_gpu_context(std::string_view cc) const;
  // What a CUDA context takes there, as a limit is reckoned; "": of a GPU that does not tell.
  uint64_t context_bytes(std::string_view cc) const;
  const GpuMemoryRow* find_gpu_memory(std::string_view gpu) const;  // by Gpu::name
  const MigCardRow* find_mig_card(std::string_view gpu) const;      // by Gpu::name; null = no MIG
  // cuBLAS's workspace of one thread; null where no row has the capability.
  const CublasWorkspaceRow* find_cublas_workspace(ComputeCapability cc) const;
  // Every size that cuBLAS's and cuBLASLt's workspaces can have without settings, bytes, each once.
  std::vector<uint64_t> cublas_workspace_sizes() const;
  const FindingTexts* find_texts(std::string_view id) const;
  // Text by key in a language ("en", "zh"); empty when the key does not exist.
  std::string_view message(std::string_view key, std::string_view lang) const;
  // The Chinese of what a table of codes says in English; empty where no row says so.
  std::string_view meaning_zh(std::string_view meaning) const;
};

}  // namespace cufit::knowledge

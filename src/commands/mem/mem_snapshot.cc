// SPDX-License-Identifier: Apache-2.0
#include "commands/mem/mem_snapshot.h"

#include "base/format.h"
#include "base/memory_size.h"
#include "base/number.h"
#include "base/shell_word.h"
#include "base/version.h"
#include "commands/progress.h"
#include "host/files/host.h"
#include "host/files/spooled_input.h"

namespace cufit::commands {
namespace {

// Reading, replay and analysis of a trace entry take up to 160 bytes: 2 GB in all.
constexpr uint64_t k_mem_snapshot_most_events = 12'000'000;

// Tells how far the reader has come.
class WatchedSource final : public ByteSource {
 public:
  WatchedSource(std::unique_ptr<ByteSource> inner, std::string name)
      : inner_(std::move(inner)), name_(name), progress_(std::move(name)) {}
  uint64_t size_bytes() const override { return inner_->size_bytes(); }
  const std::string& name() const override { return name_; }
  Result<size_t> read(uint64_t offset, std::span<std::byte> out) const override {
    progress_.show(offset + out.size(), size_bytes());
    return inner_->read(offset, out);
  }

 private:
  std::unique_ptr<ByteSource> inner_;
  std::string name_;  // as it was given: a pipe's bytes are read from a file without a name
  mutable Progress progress_;
};

// `cufit mem record -o` makes a folder: its last file that ran out of memory, else its last file.
std::string snapshot_within(const host::Host& files, const std::string& folder) {
  std::string found;
  for (const std::string& name : files.list(folder).value_or(std::vector<std::string>())) {
    if (!contains(name, ".pickle")) continue;
    if (contains(name, "-oom.") || !contains(found, "-oom.")) found = name;
  }
  return found.empty() ? found : folder + (folder.back() == '/' ? "" : "/") + found;
}

}  // namespace

Result<memory::Snapshot> load_snapshot(const Context& context, const std::string& path) {
  if (path.empty())
    return fail(Code::usage,
                "a snapshot is needed: a file of `cufit mem record` or of "
                "torch.cuda.memory._dump_snapshot");
  if (const auto status = context.files.status(path); status && status->is_directory) {
    const std::string within = snapshot_within(context.files, path);
    return fail(Code::usage, within.empty()
                                 ? format("`{}`: a folder without a snapshot", path)
                                 : format("`{}`: a folder; name the snapshot in it: `{}`", path,
                                          shell_word(within)));
  }
  CUFIT_TRY(source, host::open_input(context.files, path));
  memory::SnapshotLimits limits;
  limits.events = k_mem_snapshot_most_events;
  return memory::read_snapshot(
      std::make_shared<WatchedSource>(std::move(source), path == "-" ? "standard input" : path),
      limits);
}

Result<uint32_t> chosen_device(const std::optional<std::string>& asked,
                               const memory::Snapshot& snapshot) {
  if (!asked) return memory::busiest_device(snapshot);
  const std::optional<uint64_t> number = parse_uint(*asked);
  if (!number || *number >= snapshot.traces.size())
    return fail(Code::usage, format("`--device {}`: the snapshot has the devices 0 to {}", *asked,
                                    snapshot.traces.empty() ? 0 : snapshot.traces.size() - 1));
  return static_cast<uint32_t>(*number);
}

Result<std::optional<memory::VersionProfile>> chosen_torch(const std::optional<std::string>& asked,
                                                           const knowledge::Knowledge& knowledge) {
  if (!asked) return std::optional<memory::VersionProfile>();
  const std::optional<Version> version = parse_version(*asked);
  const Version newest = knowledge.newest_torch();
  if (!version || version->part(0) != 2 || version->part(1) > newest.part(1))
    return fail(Code::usage, format("`--torch {}`: a version from 2.0 to {}", *asked,
                                    format("{}.{}", newest.part(0), newest.part(1))));
  return std::optional(memory::version_profile(version->part(0), version->part(1)));
}

Result<OpenedRecording> open_recording(const Context& context, const SnapshotRequest& request,
                                       const MeanwhileOpened& meanwhile,
                                       const std::optional<uint64_t>& limit) {
  OpenedRecording opened;
  opened.path = request.snapshot;
  CUFIT_TRY(torch, chosen_torch(request.torch, context.knowledge));
  CUFIT_TRY(snapshot, load_snapshot(context, opened.path));
  opened.snapshot = std::make_shared<const memory::Snapshot>(std::move(snapshot));
  CUFIT_TRY(device, chosen_device(request.device, *opened.snapshot));
  opened.device = device;
  memory::Meanwhile with_snapshot;
  if (meanwhile)
    with_snapshot = [&](const memory::VerifiedRecording& verified) {
      meanwhile(opened.snapshot, verified);
    };
  Result<memory::VerifiedRecording> verified =
      memory::verify_recording(*opened.snapshot, device, torch, with_snapshot, limit);
  if (!verified) return std::move(verified.error()).in(opened.path);
  opened.verified = std::move(*verified);
  return opened;
}

}  // namespace cufit::commands

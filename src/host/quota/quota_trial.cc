// SPDX-License-Identifier: Apache-2.0
#include "host/quota/quota_trial.h"

#include <cerrno>
#include <charconv>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/format.h"
#include "formats/prose/printable.h"
#include "host/files/paths.h"
#include "host/process/this_process.h"
#include "host/process/spawn.h"
#include "host/quota/domain_file.h"
#include "host/quota/guard_library.h"

namespace cufit::host {
namespace {

// A first context on a machine without the persistence daemon takes seconds, an import of torch from a cold disk a minute.
constexpr double k_probe_seconds = 60, k_torch_trial_seconds = 180;
constexpr int k_most_trial_gpus = 256;

// Prints what the probe prints. A runtime error is code 999: torch raised something else.
constexpr const char* k_torch_trial = R"py(
import os, sys
below, above, gpu = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
def no_way(phase, why):
    print('probe %s -1 -1' % phase, flush=True)
    sys.stderr.write((str(why).strip().splitlines() or ['import torch'])[0] + '\n')
    sys.stderr.flush()
    os._exit(0)
try:
    import torch
except BaseException as error:
    no_way('library', error)
if not torch.version.cuda:
    no_way('library', 'torch %s is built without CUDA' % torch.__version__)
try:
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
except Exception as error:
    no_way('missing', error)
if gpu >= count:
    no_way('missing', 'torch %s sees %d GPUs' % (torch.__version__, count))
def ask(size):
    try:
        block = torch.empty(size, dtype=torch.uint8, device='cuda:%d' % gpu)
        torch.cuda.synchronize(gpu)
        del block
        torch.cuda.empty_cache()
        torch.cuda.synchronize(gpu)
        return 0
    except Exception as error:
        # OutOfMemoryError came with torch 1.13.
        if 'out of memory' in str(error):
            torch.cuda.empty_cache()
            return 2
        sys.stderr.write((str(error).strip().splitlines() or [''])[0] + '\n')
        return 999
first = ask(below)
print('probe done', first, ask(above), flush=True)
os._exit(0)
)py";

std::string last_words_of(std::string_view text) {
  text = trim(text);
  return formats::printable(text.substr(text.rfind('\n') + 1), 200);
}

bool read_number(std::string_view text, int& out) {
  return std::from_chars(text.data(), text.data() + text.size(), out).ec == std::errc();
}

// The line of the probe among what else a driver may print.
bool read_answer(std::string_view out, facts::TrialAnswer& answer) {
  for (std::string_view line : split_lines(out)) {
    const std::vector<std::string_view> words = split(line, ' ');
    if (words.size() != 4 || words[0] != "probe") continue;
    answer.phase = formats::printable(words[1], 64);
    return read_number(words[2], answer.below) && read_number(words[3], answer.above);
  }
  return false;
}

struct Refusals {
  uint64_t quota = 0, card = 0;
};

Refusals refusals_of(const Result<formats::QuotaDomain>& domain) {
  Refusals sum;
  if (domain)
    for (const formats::QuotaDevice& device : domain->devices)
      sum.quota += device.refusals, sum.card += device.driver_refusals;
  return sum;
}

// "device ORDINAL UUID PCI NAME" of the probe; a name may hold blanks.
std::optional<TrialGpu> read_trial_gpu(std::string_view line) {
  const std::vector<std::string_view> words = split(line, ' ');
  TrialGpu out;
  int ordinal = -1;
  if (words.size() < 5 || words[0] != "device" || !read_number(words[1], ordinal) || ordinal < 0 ||
      ordinal >= k_most_trial_gpus)
    return std::nullopt;
  out.ordinal = static_cast<uint32_t>(ordinal);
  const std::string digits = formats::printable(words[2], 32);
  if (digits.size() == 32)
    out.uuid = format("{}-{}-{}-{}-{}", digits.substr(0, 8), digits.substr(8, 4),
                      digits.substr(12, 4), digits.substr(16, 4), digits.substr(20));
  if (words[3] != "-") out.pci = lower(formats::printable(words[3], 16));
  const size_t name = words[0].size() + words[1].size() + words[2].size() + words[3].size() + 4;
  if (words[4] != "-") out.name = formats::printable(line.substr(name), 96);
  return out;
}

}  // namespace

Result<QuotaTrial> QuotaTrial::make(uint64_t limit_bytes, uint64_t context_bytes) {
  CUFIT_TRY(folder, ScriptFolder::make("quota", "", {}));
  // The loader takes both for the end of a name.
  if (folder.path().find_first_of(" :") != std::string::npos)
    return fail(Code::usage, format("`{}`: LD_PRELOAD cannot name a folder with a blank or a colon "
                                    "(TMPDIR names another folder)",
                                    folder.path()));
  formats::QuotaDomain domain;
  domain.name = "verify";
  domain.default_limit_bytes = limit_bytes;
  domain.default_context_bytes = context_bytes;
  domain.slot_count = 64;
  CUFIT_TRY(bytes, formats::make_quota_domain(domain));
  for (const auto& [name, content] : {std::pair<const char*, std::string_view>{"domain", bytes},
                                      {"libcufit-guard.so", guard_library()},
                                      {"probe", quota_probe()},
                                      {"trial.py", k_torch_trial}})
    if (Result<void> added = folder.add(name, content); !added) return added.error();
  const std::string path = folder.path() + "/domain";
  // The guard takes no file that others may write, whatever the umask is.
  if (::chmod(path.c_str(), 0600) != 0)
    return fail(Code::io, format("`{}`: {}", path, std::strerror(errno)));
  if (Result<void> may = let_run(folder.path() + "/probe"); !may) return may.error();
  return QuotaTrial(std::move(folder), path, true);
}

Result<QuotaTrial> QuotaTrial::here(const Host& host) {
  const std::string path = host.variable("CUFIT_DOMAIN").value_or("");
  CUFIT_TRY(folder, ScriptFolder::make("quota", "", {}));
  for (const auto& [name, content] :
       {std::pair<const char*, std::string_view>{"probe", quota_probe()},
        {"trial.py", k_torch_trial}})
    if (Result<void> added = folder.add(name, content); !added) return added.error();
  if (Result<void> may = let_run(folder.path() + "/probe"); !may) return may.error();
  QuotaTrial out(std::move(folder), path, false);
  if (const Result<formats::QuotaDomain> domain = out.domain(); !domain) return domain.error();
  return out;
}

Result<formats::QuotaDomain> QuotaTrial::domain() const {
  const FileHandle file(::open(domain_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0)
    return fail(errno == ENOENT ? Code::not_found : Code::io,
                format("`{}`: {}", domain_, std::strerror(errno)));
  Result<formats::QuotaDomain> domain = read_domain(file.get());
  if (!domain) return fail(domain.error().code, format("`{}`: {}", domain_, domain.error().what));
  return domain;
}

// Of the domain in which this process runs the children have everything already.
void QuotaTrial::add_variables(ChildOptions& child) const {
  if (!own_) return;
  const std::string others = process_variable("LD_PRELOAD");
  child.variables.emplace_back(
      "LD_PRELOAD", folder_.path() + "/libcufit-guard.so" + (others.empty() ? "" : ":" + others));
  child.variables.emplace_back("CUFIT_DOMAIN", domain_);
  child.variables.emplace_back("CUFIT_GUARD", std::nullopt);
  child.variables.emplace_back("CUFIT_RING", std::nullopt);
}

facts::TrialAnswer QuotaTrial::answer(ChildOptions child, Interrupts& interrupts,
                                      std::string* said) const {
  add_variables(child);
  child.leave_none = true;
  const Refusals before = refusals_of(domain());
  facts::TrialAnswer out;
  const Result<ChildOutcome> outcome = run_child(child, interrupts);
  if (!outcome) {
    out.phase = "crashed";
    out.note = outcome.error().what;
    return out;
  }
  const Refusals after = refusals_of(domain());
  out.refusals = after.quota - before.quota, out.card_refusals = after.card - before.card;
  if (said) *said = outcome->out;
  out.note = last_words_of(outcome->err);
  if (outcome->timed_out) {
    out.phase = "timeout";
  } else if (!read_answer(outcome->out, out)) {
    out.phase = "crashed";
    if (out.note.empty()) out.note = format("exit code {}", outcome->code);
  }
  return out;
}

TrialGpus QuotaTrial::gpus(Interrupts& interrupts) const {
  ChildOptions child;
  child.command = {folder_.path() + "/probe", "devices", "dlsym", "0", "0", "0"};
  child.seconds = k_probe_seconds;
  std::string said;
  TrialGpus out;
  out.answer = answer(std::move(child), interrupts, &said);
  for (std::string_view line : split_lines(said))
    if (std::optional<TrialGpu> gpu = read_trial_gpu(line)) out.gpus.push_back(std::move(*gpu));
  return out;
}

facts::TrialAnswer QuotaTrial::ask(const std::string& way, const std::string& route, uint32_t gpu,
                                   facts::TrialSizes sizes, Interrupts& interrupts) const {
  ChildOptions child;
  child.command = {
      folder_.path() + "/probe",  way, route, std::to_string(gpu), std::to_string(sizes.below),
      std::to_string(sizes.above)};
  child.seconds = k_probe_seconds;
  return answer(std::move(child), interrupts, nullptr);
}

facts::TrialAnswer QuotaTrial::ask_torch(const std::string& python, const std::string& settings,
                                         uint32_t gpu, facts::TrialSizes sizes,
                                         Interrupts& interrupts) const {
  ChildOptions child;
  child.command = {python, folder_.path() + "/trial.py", std::to_string(sizes.below),
                   std::to_string(sizes.above), std::to_string(gpu)};
  child.variables.emplace_back("PYTORCH_CUDA_ALLOC_CONF", settings);
  child.variables.emplace_back("PYTORCH_ALLOC_CONF", settings);
  child.seconds = k_torch_trial_seconds;
  return answer(std::move(child), interrupts, nullptr);
}

Result<int> QuotaTrial::run(const std::vector<std::string>& command, Interrupts& interrupts) const {
  ChildOptions child;
  child.command = command;
  child.pass_on = true;
  add_variables(child);
  CUFIT_TRY(outcome, run_child(child, interrupts));
  return outcome.code;
}

}  // namespace cufit::host

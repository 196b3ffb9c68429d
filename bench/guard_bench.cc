// SPDX-License-Identifier: Apache-2.0
// guard-bench [--smoke | --only alone|eight|start|context|kill] BUILD: what the guard costs a program, on the card of
// tests/guard, as one JSON object. Each figure is taken with and without the guard in turns. The card is a library in the
// same process, so that what is measured is the guard and not a driver; tests/gpu has the same on a real one.
#include "guard_bench.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "formats/system/quota_domain.h"

namespace guard_bench {
namespace {

using namespace cufit;
constexpr uint64_t k_gib = uint64_t{1} << 30;
const char* const k_uuid = "GPU-00000000-1111-2222-3333-444444444440";

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "guard-bench: %s\n", what.c_str());
  std::exit(1);
}

double median(std::vector<double> values) {
  if (values.empty()) fail("nothing was measured");
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A domain and a card of its own, in memory where there is a folder for that.
class Place {
 public:
  Place(const std::string& build, uint64_t limit_bytes) : build_(build) {
    std::string name = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    name += "/cufit-guard-bench-XXXXXX";
    if (!mkdtemp(name.data())) fail(name);
    folder_ = name;
    std::filesystem::create_directory(folder_ + "/rings");
    // LD_PRELOAD parts its files at blanks.
    std::filesystem::copy_file(build + "/libcufit-guard.so", folder_ + "/libcufit-guard.so");
    write("machine",
          std::string("[gpu]\nname = Card\nuuid = ") + k_uuid +
              "\npci = 0000:65:00.0\nmemory = 4294967296\ncontext = 1048576\nuncounted = 1\n");
    formats::QuotaDomain domain;
    domain.slot_count = 512;
    domain.nvml_own_process = true;
    domain.devices.emplace_back();
    domain.devices[0].uuid = k_uuid, domain.devices[0].pci = "0000:65:00.0";
    domain.devices[0].limit_bytes = limit_bytes, domain.devices[0].context_bytes = 1 << 20;
    const auto bytes = formats::make_quota_domain(domain);
    if (!bytes) fail(bytes.error().text());
    write("domain", *bytes);
  }
  ~Place() { std::filesystem::remove_all(folder_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  std::vector<std::string> variables(bool guarded, bool ring) const {
    std::vector<std::string> out = {
        "LD_LIBRARY_PATH=" + build_ + "/guard_card", "CUFIT_STANDIN=" + folder_ + "/machine",
        "CUFIT_CARD=" + folder_ + "/card", "CUFIT_DOMAIN=" + folder_ + "/domain"};
    if (ring) out.push_back("CUFIT_RING=" + folder_ + "/rings");
    if (guarded) out.push_back("LD_PRELOAD=" + folder_ + "/libcufit-guard.so");
    return out;
  }

 private:
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
    std::filesystem::permissions(folder_ + "/" + name, std::filesystem::perms(0600));
  }
  std::string build_, folder_;
};

// By vfork: what this program has mapped is not copied.
pid_t spawn(const std::vector<std::string>& words, const std::vector<std::string>& variables,
            const posix_spawn_file_actions_t* actions) {
  std::vector<char*> arguments, environment;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& one : variables) environment.push_back(const_cast<char*>(one.c_str()));
  arguments.push_back(nullptr), environment.push_back(nullptr);
  pid_t pid = 0;
  if (posix_spawn(&pid, words[0].c_str(), actions, nullptr, arguments.data(), environment.data()) !=
      0)
    fail("cannot start " + words[0]);
  return pid;
}

class Child {
 public:
  Child(const std::vector<std::string>& words, const std::vector<std::string>& variables) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) fail("no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    std::vector<std::string> all = {"/proc/self/exe", "--child"};
    all.insert(all.end(), words.begin(), words.end());
    pid_ = spawn(all, variables, &actions);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]), close(out[1]);
    to_ = in[1], from_ = out[0];
  }
  ~Child() {
    close(to_);
    if (pid_) waitpid(pid_, nullptr, 0);
    close(from_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  std::string line() {
    std::string out;
    for (char c = 0; read(from_, &c, 1) == 1 && c != '\n';) out += c;
    if (out.empty()) fail("a child said nothing");
    return out;
  }
  void go() {
    if (write(to_, "\n", 1) != 1) fail("a child is gone");
  }
  void kill_now() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  int to_ = -1, from_ = -1;
};

using Figures = std::map<std::string, double>;

struct Bench {
  std::string build;
  bool smoke;

  // `processes` at once, each calls the driver by the guard and past it in turns; medians over them and the rounds.
  void allocation(const std::string& name, size_t processes, Figures& out) const {
    static const char* const k_names[] = {"median with ns",    "p99 with ns",    "free with ns",
                                          "median without ns", "p99 without ns", "free without ns"};
    std::vector<double> seen[6];
    const std::string count = smoke ? "1000" : processes == 1 ? "200000" : "50000";
    for (int round = 0; round < (smoke ? 1 : 11); ++round) {
      const Place place(build, 1024 * k_gib);
      std::vector<std::unique_ptr<Child>> all;
      for (size_t i = 0; i < processes; ++i)
        all.push_back(std::make_unique<Child>(std::vector<std::string>{"allocate", count},
                                              place.variables(true, true)));
      for (auto& one : all) one->line();
      for (auto& one : all) one->go();
      for (auto& one : all) {
        std::istringstream line(one->line());
        for (std::vector<double>& values : seen) {
          if (!(line >> values.emplace_back())) fail("a child said something else");
        }
      }
    }
    for (size_t i = 0; i < 6; ++i) out[name + " " + k_names[i]] = median(seen[i]);
  }

  // In pairs, and the median of their differences: what else the machine does falls on both.
  void start(Figures& out) const {
    const Place place(build, k_gib);
    std::vector<double> with, without, added;
    for (int i = 0; i < (smoke ? 20 : 3000); ++i) {
      double took[2] = {};
      for (const bool guarded : {i % 2 == 0, i % 2 != 0}) {
        const std::vector<std::string> variables = place.variables(guarded, true);
        const uint64_t before = now_ns();
        waitpid(spawn({"/bin/true"}, variables, nullptr), nullptr, 0);
        took[guarded] = double(now_ns() - before) / 1e3;
      }
      without.push_back(took[0]), with.push_back(took[1]), added.push_back(took[1] - took[0]);
    }
    out["start with us"] = median(with), out["start without us"] = median(without);
    out["start added us"] = median(added);
  }

  // The first context of the Nth process of a domain.
  void context(Figures& out) const {
    const Place place(build, 1024 * k_gib);
    std::vector<std::unique_ptr<Child>> others;
    size_t ready = 0;
    for (const size_t nth : {1, 64, 300}) {
      while (others.size() + 1 < nth)
        others.push_back(std::make_unique<Child>(std::vector<std::string>{"hold", "4194304"},
                                                 place.variables(true, false)));
      for (; ready < others.size(); ++ready) others[ready]->line();
      std::vector<double> with, without;
      for (int i = 0; i < (smoke ? 2 : 31); ++i) {
        for (const bool guarded : {i % 2 == 0, i % 2 != 0}) {
          Child probe({"context"}, place.variables(guarded, true));
          (guarded ? with : without).push_back(std::stod(probe.line()) / 1e6);
        }
      }
      const std::string name = "context " + std::to_string(nth);
      out[name + " with ms"] = median(with), out[name + " without ms"] = median(without);
    }
  }

  // From the kill to the allocation of who asks all the time.
  void kill_and_claim(Figures& out) const {
    const std::string most = std::to_string(k_gib - (8 << 20));
    std::vector<double> took;
    for (int i = 0; i < (smoke ? 2 : 51); ++i) {
      const Place place(build, k_gib);
      Child holder({"hold", most}, place.variables(true, true));
      holder.line();
      Child claimer({"claim", most}, place.variables(true, true));
      claimer.line();
      claimer.go();
      std::this_thread::sleep_for(std::chrono::microseconds(3000 + i * 37));
      const uint64_t killed = now_ns();
      holder.kill_now();
      took.push_back((std::stod(claimer.line()) - double(killed)) / 1e6);
    }
    out["free after SIGKILL ms"] = median(took);
    out["free after SIGKILL worst ms"] = *std::max_element(took.begin(), took.end());
  }
};

}  // namespace
}  // namespace guard_bench

int main(int count, char** arguments) {
  using namespace guard_bench;
  if (count > 2 && std::string(arguments[1]) == "--child") return child(count - 2, arguments + 2);
  const bool smoke = count > 1 && std::string(arguments[1]) == "--smoke";
  const bool part = count > 2 && std::string(arguments[1]) == "--only";
  if (count != (part ? 4 : smoke ? 3 : 2)) return 2;
  const std::string only = part ? arguments[2] : "";
  const Bench bench{std::filesystem::absolute(arguments[count - 1]).string(), smoke};
  std::signal(SIGPIPE, SIG_IGN);
  Figures figures;
  figures["cores"] = std::thread::hardware_concurrency();
  if (!part || only == "alone") bench.allocation("alone", 1, figures);
  if (!part || only == "eight") bench.allocation("eight", 8, figures);
  if (!part || only == "start") bench.start(figures);
  if (!part || only == "context") bench.context(figures);
  if (!part || only == "kill") bench.kill_and_claim(figures);
  const char* between = "{";
  for (const auto& [name, value] : figures) {
    std::printf("%s\"%s\": %.6g", between, name.c_str(), value);
    between = ",\n ";
  }
  std::printf("}\n");
  return 0;
}

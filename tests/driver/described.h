// SPDX-License-Identifier: Apache-2.0
// Machines described for the stand-in driver libraries (tests/standin), and the product's answers
// about them.
#pragma once

#include <unistd.h>

#include <fstream>
#include <map>
#include <string>

#include "host/probe.h"
#include "support/places.h"

namespace cufit::test {

inline const std::string k_system = "driver = 580.95.05\ncuda = 13000\n";

// A healthy data-centre GPU with every answer; `more` may replace or add keys.
inline std::string h200(int index = 0, const std::string& more = {}) {
  std::string n = std::to_string(index);
  return "[gpu]\nname = NVIDIA H200\nuuid = GPU-0000000" + n + "-1111-2222-3333-44444444444" + n +
         "\nserial = 165402300000" + n + "\npci = 0000:0" + n +
         ":00.0\ncc = 9.0\nbrand = 14\n"
         "memory = 67108864\nused = 1048576\nreserved = 2097152\n"
         "mig.current = 0\necc.current = 1\nuncorrected.volatile = 0\nuncorrected.aggregate = 2\n"
         "corrected.volatile = 0\ncorrected.aggregate = 5\nremapped.corrected = "
         "1\nremapped.uncorrected = 2\n"
         "remapped.pending = 1\nremapped.failed = 0\nthrottle = 0x41\npcie_gen = 4\npcie_gen_max = "
         "5\n"
         "pcie_width = 8\npcie_width_max = 16\nnvlinks = 18\nnvlinks.active = 17\ncompute_mode = "
         "0\n"
         "persistence = 1\ndisplay_active = 0\ntemperature = 36\npower_mw = 121560\npower_limit_mw "
         "= 700000\n" +
         more;
}

class Described {
 public:
  explicit Described(const std::string& text) {
    char path[] = "/tmp/cufit-standin-XXXXXX";
    int fd = mkstemp(path);
    if (fd >= 0) close(fd);
    path_ = path;
    std::ofstream(path_) << text;
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;
  ~Described() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Ask {
  std::string libraries = cufit::test::binary_dir() + "/standin";
  std::map<std::string, std::string> variables;
  double timeout_seconds = 30;
  bool deep = false;
  std::function<void(const std::string&, uint64_t, uint64_t)> progress;
};

inline facts::Facts ask(const std::string& machine, Ask how = {}) {
  Described described(machine);
  how.variables["CUFIT_STANDIN"] = described.path();
  host::RealHost machine_host("/", how.variables);
  host::ProbeOptions options;
  options.driver_library_dir = how.libraries;
  options.driver_timeout_seconds = how.timeout_seconds;
  options.deep = how.deep;
  options.progress = how.progress;
  facts::Facts facts;
  host::read_driver_answers(machine_host, options, facts);
  return facts;
}

}  // namespace cufit::test

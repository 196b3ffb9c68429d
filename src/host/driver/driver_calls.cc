// SPDX-License-Identifier: Apache-2.0
#include "host/driver/driver_calls.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include "host/driver/driver_wire.h"

namespace cufit::host {

Fact<std::string> DriverCalls::open(const std::string& directory, const char* soname,
                                    SourceKind kind) {
  std::string path = directory.empty() ? soname : directory + "/" + soname;
  before("dlopen");  // constructors of the library run inside and may hang or crash as well
  double start = now();
  library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) {
    const char* message = dlerror();
    return missing<std::string>(WhyNot::not_present, kind, path,
                                message ? message : "dlopen failed");
  }
  seconds_ += now() - start;
  link_map* map = nullptr;
  if (dlinfo(library_, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && map->l_name[0]) {
    char real[PATH_MAX];
    path = realpath(map->l_name, real) ? real : map->l_name;
  }
  return known<std::string>(std::move(path), kind, soname);
}

void* DriverCalls::find(const char* name) const {
  return library_ ? dlsym(library_, name) : nullptr;
}

void DriverCalls::before(const char* name) {
  if (note_ != nullptr) {
    std::strncpy(note_->name, name, sizeof note_->name - 1);
    return;
  }
  std::string out;
  if (pending_) pending_(out);
  put_call(out, name);
  send(out);
}

void DriverCalls::flush() {
  std::string out;
  if (pending_) pending_(out);
  send(out);
}

void DriverCalls::send(const std::string& frames) {
  size_t sent = 0;
  while (sent < frames.size()) {
    ssize_t count = write(pipe_, frames.data() + sent, frames.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) _exit(1);  // the parent is gone; nobody is left to tell
    sent += static_cast<size_t>(count);
  }
}

double DriverCalls::now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace cufit::host

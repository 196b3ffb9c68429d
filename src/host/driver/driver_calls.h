// SPDX-License-Identifier: Apache-2.0
// Calls into a driver library from inside the driver child: opens it, finds functions by name, and
// tells the parent before each call what is known so far and what is called next. Used by
// nvml_query.cc, cuda_query.cc and their parts; nothing here runs in cufit's own process.
//
// Prototypes are our own (no toolkit header): F in call<F>() is the C function type as the vendor
// documents it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/fact.h"

namespace cufit::host {

constexpr int k_no_symbol =
    -1;  // in place of a result: the library (an old driver) has no such function

// The call that a child is in, in memory that it shares with its parent: for children that ask for ever, where a frame
// before each call would cost more than the calls.
struct CallNote {
  char name[64];
};

class DriverCalls {
 public:
  explicit DriverCalls(int pipe) : pipe_(pipe) {}
  DriverCalls(int pipe, CallNote* note) : pipe_(pipe), note_(note) {}

  // Opens `soname` from `directory`, or through the loader's search when that is empty. Returns
  // where it lies, or the loader's message. The library is never closed: drivers start threads that
  // outlive dlclose.
  Fact<std::string> open(const std::string& directory, const char* soname, SourceKind kind);

  // What `pending` appends is sent before the next call: the facts that this part of the work has
  // gathered.
  void set_pending(std::function<void(std::string& out)> pending) { pending_ = std::move(pending); }
  void flush();                          // sends pending state now
  void send(const std::string& frames);  // sends as is

  template <class F, class... Args>
  int call(const char* name, Args... args) {
    F* function = reinterpret_cast<F*>(find(name));
    if (!function) return k_no_symbol;
    before(name);
    double start = now();
    int result = static_cast<int>(function(args...));
    seconds_ += now() - start;
    return result;
  }
  bool has(const char* name) const { return find(name) != nullptr; }
  void* find(const char* name) const;
  void before(const char* name);
  double seconds() const { return seconds_; }  // inside the driver's functions so far
  static double now();                         // monotonic seconds

 private:
  int pipe_;
  CallNote* note_ = nullptr;  // null: frames say it
  void* library_ = nullptr;
  double seconds_ = 0;
  std::function<void(std::string& out)> pending_;
};

}  // namespace cufit::host

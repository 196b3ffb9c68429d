// SPDX-License-Identifier: Apache-2.0
// The list of objects that a process would have loaded, built as glibc builds it: the program,
// LD_PRELOAD, then what each needs, breadth first; then one dlopen after the other, each with its
// caller. Nothing is loaded or run. Used by host/python/torch_loads. host/machine/loader does the
// search for one name; the rules about objects that are already there, about who asked, and about a
// dlopen that fails as a whole are here (glibc: elf/dl-load.c, dl-deps.c, dl-open.c).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/binary/elf.h"
#include "host/machine/loader.h"

namespace cufit::host {

struct ImageObject {
  std::string name;                       // as first asked for
  std::string path;                       // as opened
  std::string real_path;                  // identity: two paths to one file are one object
  std::string by;                         // Located::by, "program" or "LD_PRELOAD"
  const ImageObject* asked_by = nullptr;  // null for the program
  std::shared_ptr<const formats::ElfFile> elf;
  std::vector<std::string> names;  // further names under which it was asked for
  Requester requester;             // what the search needs of it
};

struct LoadFailure {
  std::string name;      // library that was not found or is damaged
  std::string asked_by;  // path
  std::string path;      // of the damaged file; empty = found nowhere
  std::string problem;   // "not found", "invalid ELF header"
};

// Reads one ELF file once; shared with whoever else needs it. Null with a reason when it cannot be
// read.
using ElfReader = std::function<std::shared_ptr<const formats::ElfFile>(const std::string& path,
                                                                        std::string& why)>;

class ProcessImage {
 public:
  ProcessImage(const Host& host, const LibrarySearch& search, ElfReader reader);

  // The program, LD_PRELOAD and everything they need. Failures do not end it: a real process would
  // not start, a report wants the rest. A missing LD_PRELOAD object is ignored, as glibc does.
  // Without this call, open() works as in a program that nothing is known of.
  std::vector<LoadFailure> start(const std::string& program);

  enum class OnFailure { undo, keep };
  // dlopen(name) called by code of `caller`. With `undo` a failure leaves the image as it was, as
  // in glibc; `keep` goes on past it, so that all missing libraries are named. `opened` gets the
  // object.
  std::vector<LoadFailure> open(const std::string& name, const ImageObject* caller,
                                OnFailure on_failure, const ImageObject** opened = nullptr);

  const std::deque<ImageObject>& objects() const {
    return objects_;
  }                                                        // in load order; addresses are stable
  const ImageObject* find(const std::string& name) const;  // loaded under this name, path or soname

 private:
  enum class Why { needed, opened };
  ImageObject* map(const std::string& name, const ImageObject* by, Why why_asked,
                   std::vector<LoadFailure>& failures);
  ImageObject* add(const std::string& name, const Located& located, const ImageObject* by,
                   Why why_asked, std::vector<LoadFailure>& failures);
  void map_needed(size_t first, OnFailure on_failure, std::vector<LoadFailure>& failures);
  const Requester* program() const { return has_program_ ? &objects_.front().requester : nullptr; }

  const Host& host_;
  const LibrarySearch& search_;
  ElfReader read_;
  std::deque<ImageObject> objects_;
  bool has_program_ = false;
};

}  // namespace cufit::host

// SPDX-License-Identifier: Apache-2.0
#include "host/python/process_image.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::host {
namespace {

constexpr size_t k_max_objects = 4096;  // a hostile file may need thousands of names

bool is_named(const ImageObject& object, const std::string& name) {
  return object.path == name || object.elf->soname == name ||
         std::find(object.names.begin(), object.names.end(), name) != object.names.end();
}

}  // namespace

ProcessImage::ProcessImage(const Host& host, const LibrarySearch& search, ElfReader reader)
    : host_(host), search_(search), read_(std::move(reader)) {}

const ImageObject* ProcessImage::find(const std::string& name) const {
  // The program is not matched: glibc gives it the empty name and it has no soname.
  for (size_t i = has_program_ ? 1 : 0; i < objects_.size(); ++i)
    if (is_named(objects_[i], name)) return &objects_[i];
  return nullptr;
}

std::vector<LoadFailure> ProcessImage::start(const std::string& program) {
  std::vector<LoadFailure> failures;
  objects_.clear();
  has_program_ = false;
  // $ORIGIN of a program comes from /proc/self/exe: its links are resolved.
  std::string path = host_.real_path(program).value_or(program);
  if (!add(program, {path, "program", {}}, nullptr, Why::opened, failures)) return failures;
  has_program_ = true;
  const ImageObject* main = &objects_.front();
  for (const std::string& name : search_.settings().ld_preload) {
    std::vector<LoadFailure> ignored;
    size_t before = objects_.size();
    map(name, main, Why::needed, ignored);
    if (objects_.size() > before) objects_.back().by = "LD_PRELOAD";
  }
  map_needed(0, OnFailure::keep, failures);
  return failures;
}

std::vector<LoadFailure> ProcessImage::open(const std::string& name, const ImageObject* caller,
                                            OnFailure on_failure, const ImageObject** opened) {
  std::vector<LoadFailure> failures;
  if (opened) *opened = nullptr;
  size_t before = objects_.size();
  ImageObject* object = map(name, caller, Why::opened, failures);
  if (!object) return failures;
  if (objects_.size() > before) map_needed(before, on_failure, failures);
  if (!failures.empty() && on_failure == OnFailure::undo) {
    objects_.resize(std::min(before, objects_.size()));
    return failures;
  }
  if (opened) *opened = object;
  return failures;
}

// Breadth first: the objects that are appended on the way are visited in turn.
void ProcessImage::map_needed(size_t first, OnFailure on_failure,
                              std::vector<LoadFailure>& failures) {
  for (size_t i = first; i < objects_.size() && objects_.size() < k_max_objects; ++i) {
    std::shared_ptr<const formats::ElfFile> elf = objects_[i].elf;
    for (const std::string& name : elf->needed) {
      map(name, &objects_[i], Why::needed, failures);
      if (!failures.empty() && on_failure == OnFailure::undo) return;
    }
  }
}

ImageObject* ProcessImage::map(const std::string& name, const ImageObject* by, Why why_asked,
                               std::vector<LoadFailure>& failures) {
  if (const ImageObject* loaded = find(name)) return const_cast<ImageObject*>(loaded);
  auto located = search_.find(name, by ? &by->requester : program(), program());
  if (!located || !located->problem.empty()) {
    std::string asked_by = by ? by->path : std::string();
    // With OnFailure::keep the same name may be asked for again.
    for (const LoadFailure& known : failures)
      if (known.name == name) return nullptr;
    failures.push_back({name, asked_by, located ? located->path : std::string(),
                        located ? located->problem : "not found"});
    return nullptr;
  }
  return add(name, *located, by, why_asked, failures);
}

ImageObject* ProcessImage::add(const std::string& name, const Located& located,
                               const ImageObject* by, Why why_asked,
                               std::vector<LoadFailure>& failures) {
  std::string real = host_.real_path(located.path).value_or(located.path);
  for (ImageObject& object : objects_) {
    if (object.real_path != real) continue;
    object.names.push_back(name);
    return &object;
  }
  std::string why;
  std::shared_ptr<const formats::ElfFile> elf = read_(located.path, why);
  if (!elf) {
    failures.push_back({name, by ? by->path : std::string(), located.path, why});
    return nullptr;
  }
  ImageObject object;
  object.name = name;
  object.path = located.path;
  object.real_path = std::move(real);
  object.by = located.by;
  object.asked_by = by;
  object.names.push_back(name);
  // The caller of dlopen lends its paths to the search for that one name only: what the new object
  // needs is not looked for in the caller's RPATH (shown by the comparison with glibc), though
  // still in the program's.
  const Requester* loader = by && why_asked == Why::needed ? &by->requester : nullptr;
  object.requester = {located.path, elf->rpath, elf->runpath, elf->no_default_lib, loader};
  object.elf = std::move(elf);
  objects_.push_back(std::move(object));
  return &objects_.back();
}

}  // namespace cufit::host

// SPDX-License-Identifier: Apache-2.0
#include "formats/archive/zip_library.h"

#include <dlfcn.h>

namespace cufit::formats {
namespace {

struct Loaded {
  ZipLibrary functions{};
  std::string problem;
};

template <class Function>
void find(void* library, const char* name, Function& function, std::string& problem) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function && problem.empty()) problem = std::string("libzip has no ") + name;
}

Loaded load() {
  Loaded loaded;
  void* library = nullptr;
  for (const char* name :
       {"libzip.so.5", "libzip.so.4"}) {  // 1.3 and newer; Debian still calls 1.7 ".4"
    if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (!library) {
    loaded.problem = "reading a wheel needs libzip (libzip.so.5 or libzip.so.4; Debian: libzip4)";
    return loaded;
  }
  ZipLibrary& f = loaded.functions;
  find(library, "zip_discard", f.discard, loaded.problem);
  find(library, "zip_error_fini", f.error_fini, loaded.problem);
  find(library, "zip_error_init", f.error_init, loaded.problem);
  find(library, "zip_error_set", f.error_set, loaded.problem);
  find(library, "zip_error_strerror", f.error_strerror, loaded.problem);
  find(library, "zip_error_to_data", f.error_to_data, loaded.problem);
  find(library, "zip_fclose", f.fclose, loaded.problem);
  find(library, "zip_file_get_error", f.file_get_error, loaded.problem);
  find(library, "zip_fopen_index", f.fopen_index, loaded.problem);
  find(library, "zip_fread", f.fread, loaded.problem);
  find(library, "zip_get_error", f.get_error, loaded.problem);
  find(library, "zip_get_num_entries", f.get_num_entries, loaded.problem);
  find(library, "zip_open_from_source", f.open_from_source, loaded.problem);
  find(library, "zip_source_free", f.source_free, loaded.problem);
  find(library, "zip_source_function_create", f.source_function_create, loaded.problem);
  find(library, "zip_source_seek_compute_offset", f.source_seek_compute_offset, loaded.problem);
  find(library, "zip_stat_index", f.stat_index, loaded.problem);
  find(library, "zip_stat_init", f.stat_init, loaded.problem);
  return loaded;
}

const Loaded& loaded() {
  static const Loaded k_loaded = load();
  return k_loaded;
}

}  // namespace

Result<const ZipLibrary*> zip_library() {
  if (!loaded().problem.empty()) return fail(Code::unsupported, loaded().problem);
  return &loaded().functions;
}

const ZipLibrary& zip() { return loaded().functions; }

}  // namespace cufit::formats

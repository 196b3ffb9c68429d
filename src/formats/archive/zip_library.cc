// SPDX-License-Identifier: Apache-2.0
#include "formats/archive/zip_library.h"

#include <dlfcn.h>

namespace cufit::formats {
namespace {

struct Loaded {
  ZipLibrary functions{};
  std::string problem;
};

#ifdef CUFIT_LINKED  // a release: libzip is part of the program
#define CUFIT_ZIP(member, name) loaded.functions.member = &::name
#else
#define CUFIT_ZIP(member, name) find(library, #name, loaded.functions.member, loaded.problem)

template <class Function>
void find(void* library, const char* name, Function& function, std::string& problem) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function && problem.empty()) problem = std::string("libzip has no ") + name;
}
#endif

Loaded load() {
  Loaded loaded;
#ifndef CUFIT_LINKED
  void* library = nullptr;
  for (const char* name :
       {"libzip.so.5", "libzip.so.4"}) {  // 1.3 and newer; Debian still calls 1.7 ".4"
    if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (!library) {
    loaded.problem = "reading a wheel needs libzip (libzip.so.5 or libzip.so.4; Debian: libzip4)";
    return loaded;
  }
#endif
  CUFIT_ZIP(discard, zip_discard);
  CUFIT_ZIP(error_fini, zip_error_fini);
  CUFIT_ZIP(error_init, zip_error_init);
  CUFIT_ZIP(error_set, zip_error_set);
  CUFIT_ZIP(error_strerror, zip_error_strerror);
  CUFIT_ZIP(error_to_data, zip_error_to_data);
  CUFIT_ZIP(fclose, zip_fclose);
  CUFIT_ZIP(file_get_error, zip_file_get_error);
  CUFIT_ZIP(fopen_index, zip_fopen_index);
  CUFIT_ZIP(fread, zip_fread);
  CUFIT_ZIP(get_error, zip_get_error);
  CUFIT_ZIP(get_num_entries, zip_get_num_entries);
  CUFIT_ZIP(open_from_source, zip_open_from_source);
  CUFIT_ZIP(source_free, zip_source_free);
  CUFIT_ZIP(source_function_create, zip_source_function_create);
  CUFIT_ZIP(source_seek_compute_offset, zip_source_seek_compute_offset);
  CUFIT_ZIP(stat_index, zip_stat_index);
  CUFIT_ZIP(stat_init, zip_stat_init);
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

// SPDX-License-Identifier: Apache-2.0
// libzip, opened when the first wheel is read. Linked the usual way it would load libcrypto with
// every start of cufit (3.3 of 4 ms here) and keep the program from being copied to a machine
// without it. Used by zip.cc only.
#pragma once

#include <zip.h>

#include "base/result.h"

namespace cufit::formats {

struct ZipLibrary {
  decltype(&::zip_discard) discard;
  decltype(&::zip_error_fini) error_fini;
  decltype(&::zip_error_init) error_init;
  decltype(&::zip_error_set) error_set;
  decltype(&::zip_error_strerror) error_strerror;
  decltype(&::zip_error_to_data) error_to_data;
  decltype(&::zip_fclose) fclose;
  decltype(&::zip_file_get_error) file_get_error;
  decltype(&::zip_fopen_index) fopen_index;
  decltype(&::zip_fread) fread;
  decltype(&::zip_get_error) get_error;
  decltype(&::zip_get_num_entries) get_num_entries;
  decltype(&::zip_open_from_source) open_from_source;
  decltype(&::zip_source_free) source_free;
  decltype(&::zip_source_function_create) source_function_create;
  decltype(&::zip_source_seek_compute_offset) source_seek_compute_offset;
  decltype(&::zip_stat_index) stat_index;
  decltype(&::zip_stat_init) stat_init;
};

// Error{unsupported} when no libzip of a known ABI is installed.
Result<const ZipLibrary*> zip_library();
// After zip_library() succeeded.
const ZipLibrary& zip();

}  // namespace cufit::formats

// SPDX-License-Identifier: Apache-2.0
// The text files that describe an installed Python distribution: METADATA (or PKG-INFO), RECORD,
// WHEEL, direct_url.json's kind, pyvenv.cfg and .pth files, and the names that go with them. Used
// by host/python/python_envs; nothing is run or imported.
//
// METADATA and WHEEL are RFC 822 headers ("Name: value", continuation lines begin with a space) up
// to the first empty line. RECORD is CSV: path, hash, size; a path with a comma or a quote is
// quoted and quotes are doubled. Paths count from the folder that holds the dist-info folder and
// may climb out of it ("../../../bin/x").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cufit::formats {

// PEP 503: lower case, runs of "-", "_" and "." become one "-".
std::string normalize_name(std::string_view name);

struct PythonMetadata {
  std::string name, version;
  std::vector<std::string> requires_dist;  // as written, with markers
};
PythonMetadata parse_python_metadata(std::string_view text);

// Values of every line `Key: value` with this key (letter case ignored) in the head of the text.
std::vector<std::string> header_values(std::string_view text, std::string_view key);

// "torch-2.11.0.dist-info" -> {"torch", "2.11.0"}; also ".egg-info"
// ("torch-2.11.0-py3.12.egg-info") and ".data".
struct FolderName {
  std::string name, version;
  std::string suffix;  // "dist-info", "egg-info"
};
std::optional<FolderName> parse_metadata_folder(std::string_view file_name);

// One line of a RECORD. Files that the installer made itself (__pycache__) have no size there.
struct RecordFile {
  std::string path;
  std::optional<uint64_t> size_bytes;
};

// What cufit wants of a RECORD: shared objects, the top-level packages, and which files there
// should be: modules and shared objects, or all but compiled modules and the metadata itself.
enum class RecordFiles { code, all };
struct RecordSummary {
  std::vector<std::string> shared_objects;
  std::vector<std::string> packages;  // "torch/__init__.py"
  std::vector<RecordFile> wanted;     // these two among them
  uint64_t files = 0;                 // all lines with a path
  std::vector<uint64_t> bad_lines;    // line numbers, at most 8: an unclosed quote or a zero byte
};
RecordSummary parse_record(std::string_view text, RecordFiles wanted = RecordFiles::code);

// "libcudart.so.12", "_C.cpython-312-x86_64-linux-gnu.so", "_C.abi3.so"
bool is_shared_object_name(std::string_view path);
// "cpython-312", "abi3", "" of a file name.
std::string python_tag_of(std::string_view file_name);

// `key = value` lines of pyvenv.cfg; keys in lower case.
std::vector<std::pair<std::string, std::string>> parse_pyvenv_cfg(std::string_view text);

// Folders that a .pth file adds; lines that begin with `import` would be run by Python and are only
// counted.
struct PthFile {
  std::vector<std::string> folders;
  uint32_t imports = 0;
};
PthFile parse_pth(std::string_view text);

}  // namespace cufit::formats

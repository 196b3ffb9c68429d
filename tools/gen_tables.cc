// SPDX-License-Identifier: Apache-2.0
// gen-tables: reads data/*.toml, data/findings/*.toml and data/messages/*.toml and writes one C++
// file with constexpr arrays and Knowledge::builtin(). Run by the build before anything of
// src/knowledge is linked.
//
// A table is `[name]` with default `source` and `date`, and `rows = [ {...}, ... ]`; a row may name
// its own source and date. A row without a source does not compile: every number about the world
// can be traced. Keys that only people read (`note`, `confidence`) are allowed everywhere and not
// compiled in.
//
// usage: gen-tables DATA_DIR OUT.cc        errors are `file:line: what`, exit code 1
//        gen-tables DATA_DIR --release OUT.toml   a file for `cufit self update-tables`
#include "gen_tables.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace gen {

int error_count = 0;

void report(const std::string& file, const toml::source_region& at, const std::string& what) {
  std::fprintf(stderr, "%s:%u: %s\n", file.c_str(), at.begin.line, what.c_str());
  ++error_count;
}

std::string Pool::add(const std::string& text) {
  if (text.empty()) return "{}";
  const auto [place, is_new] = places_.try_emplace(text, all_.size());
  if (is_new) all_ += text;
  return "{" + std::to_string(place->second) + ", " + std::to_string(text.size()) + "}";
}

std::string Pool::cpp() const {
  constexpr size_t k_piece = 4000;  // one literal of a line; adjacent ones are one string
  std::string out = "constexpr char k_pool[] =\n";
  for (size_t at = 0, end = 0; at < all_.size(); at = end) {
    end = std::min(at + k_piece, all_.size());
    while (end < all_.size() && (all_[end] & 0xC0) == 0x80) ++end;  // no character is cut
    out += "    " + literal_of(std::string_view(all_).substr(at, end - at)) + "\n";
  }
  return out + (all_.empty() ? "    \"\"" : "") + ";\n";
}

std::string quote(std::string_view text) { return literal_of(text) + "sv"; }

std::string literal_of(std::string_view text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    char buffer[8];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c < 0x20 || c == '?') {  // '?': no trigraphs in any mode
      std::snprintf(buffer, sizeof buffer, "\\%03o", c);
      out += buffer;
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

namespace {

std::string joined(const toml::array& list, const std::string& file) {
  std::string out;
  for (const toml::node& item : list) {
    const auto* text = item.as_string();
    if (!text) {
      report(file, item.source(), "a list holds only strings");
      continue;
    }
    if (!out.empty()) out += ' ';
    out += **text;
  }
  return out;
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

// The C++ literal of one field, or an error.
std::string literal(const Field& field, const toml::node& node, const std::string& file) {
  const std::string wrong = std::string("`") + field.key + "` has the wrong type";
  switch (field.kind) {
    case Kind::text:
      if (const auto* text = node.as_string()) return quote(**text);
      if (const auto* date = node.as_date()) {
        std::ostringstream out;
        out << **date;
        return quote(out.str());
      }
      break;
    case Kind::lower:
      if (const auto* text = node.as_string()) return quote(lower(**text));
      break;
    case Kind::list:
      if (const auto* list = node.as_array()) return quote(lower(joined(*list, file)));
      break;
    case Kind::integer:
      if (const auto* number = node.as_integer()) return std::to_string(**number);
      break;
    case Kind::real:
      if (const auto* number = node.as_integer()) return std::to_string(**number);
      if (const auto* number = node.as_floating_point()) {
        std::ostringstream out;
        out << **number;
        return out.str();
      }
      break;
  }
  report(file, node.source(), wrong);
  return "{}";
}

std::string row_literal(const TableSpec& spec, const toml::table& row, const std::string& file) {
  static const std::set<std::string> for_people = {"source", "date", "note", "confidence"};
  std::set<std::string> known = for_people;
  std::string out = "  {";
  for (const Field& field : spec.fields) {
    known.insert(field.key);
    if (out.size() > 3) out += ", ";
    const toml::node* node = row.get(field.key);
    if (node) {
      out += literal(field, *node, file);
    } else {
      if (field.required) report(file, row.source(), std::string("row lacks `") + field.key + "`");
      out += field.kind == Kind::integer || field.kind == Kind::real ? "0" : "\"\"sv";
    }
  }
  for (const auto& [key, value] : row) {
    if (!known.count(std::string(key.str()))) {
      report(file, value.source(),
             "unknown key `" + std::string(key.str()) + "` in table `" + spec.name + "`");
    }
  }
  return out + "},\n";
}

bool has_source(const toml::table& table) {
  const auto* source = table.get_as<std::string>("source");
  return source && !(**source).empty();
}

bool has_date(const toml::table& table) {
  return table.get_as<toml::date>("date") || table.get_as<std::string>("date");
}

// The newest day on which a row was looked up: "tables of 2026-11-28".
std::string newest_date;

void take_date(const toml::table& table) {
  std::ostringstream day;
  if (const auto* date = table.get_as<toml::date>("date")) day << **date;
  if (const auto* text = table.get_as<std::string>("date")) day << **text;
  newest_date = std::max(newest_date, day.str());
}

void read_rows(const TableSpec& spec, const toml::table& table, const std::string& file,
               std::string& out) {
  const toml::array* rows = table.get_as<toml::array>("rows");
  if (!rows)
    return report(file, table.source(), std::string("table `") + spec.name + "` has no `rows`");
  for (const toml::node& node : *rows) {
    const toml::table* row = node.as_table();
    if (!row) {
      report(file, node.source(), "a row is an inline table");
      continue;
    }
    if (!has_source(table) && !has_source(*row))
      report(file, row->source(), "row without `source`");
    take_date(has_date(*row) ? *row : table);
    if (!has_date(table) && !has_date(*row)) report(file, row->source(), "row without `date`");
    out += row_literal(spec, *row, file);
  }
}

}  // namespace

void flatten(const toml::table& table, const std::string& prefix, const std::string& lang,
             const std::string& file, Texts& out) {
  for (const auto& [key, value] : table) {
    const std::string name =
        prefix.empty() ? std::string(key.str()) : prefix + "." + std::string(key.str());
    const auto* text = value.as_string();
    const toml::table* inner = value.as_table();
    if (text && !lang.empty()) {
      (lang == "en" ? out[name].en : out[name].zh) = **text;
    } else if (text && (key.str() == "en" || key.str() == "zh")) {
      (key.str() == "en" ? out[prefix].en : out[prefix].zh) = **text;
    } else if (inner) {
      flatten(*inner, name, lang, file, out);
    } else {
      report(file, value.source(), "`" + name + "` is no text");
    }
  }
}

std::string text_pairs(const Texts& texts, const std::string& file, const toml::source_region& at) {
  std::string out;
  for (const auto& [key, text] : texts) {
    if (text.en.empty() || text.zh.empty()) {
      report(file, at, "`" + key + "` lacks `" + (text.en.empty() ? "en" : "zh") + "`");
    }
    out += "  {" + quote(key) + ", " + quote(text.en) + ", " + quote(text.zh) + "},\n";
  }
  return out;
}

std::optional<toml::table> parse(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  toml::parse_result result = toml::parse(bytes, path.string());
  if (result) return std::move(result).table();
  report(path.string(), result.error().source(), std::string(result.error().description()));
  return std::nullopt;
}

std::vector<fs::path> toml_files(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".toml") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

namespace {

std::string tables_cpp(const fs::path& data, std::string& members) {
  std::map<std::string, std::string> rows;
  for (const fs::path& path : toml_files(data)) {
    if (path.filename() == "vocabulary.toml") continue;  // no table of rows
    std::optional<toml::table> root = parse(path);
    if (!root) continue;
    for (const auto& [key, value] : *root) {
      const auto spec =
          std::find_if(specs().begin(), specs().end(),
                       [name = key.str()](const TableSpec& s) { return name == s.name; });
      const toml::table* table = value.as_table();
      if (spec == specs().end() || !table) {
        report(path.string(), value.source(), "unknown table `" + std::string(key.str()) + "`");
      } else {
        read_rows(*spec, *table, path.string(), rows[spec->name]);
      }
    }
  }
  std::string out;
  for (const TableSpec& spec : specs()) {
    if (rows[spec.name].empty()) continue;
    out += std::string("constexpr ") + spec.type + " k_" + spec.member + "[] = {\n" +
           rows[spec.name] + "};\n";
    members += std::string("  .") + spec.member + " = k_" + spec.member + ",\n";
  }
  return out;
}

// read_release_tables(): the same rows, from a file that the program reads.
std::string readers_cpp() {
  std::string out;
  for (const TableSpec& spec : specs()) {
    if (!spec.release) continue;
    out += std::string("  out.") + spec.member + " = in.rows<" + spec.type + ">(\"" + spec.name +
           "\", [](TableReader::Row& row) {\n    return " + spec.type + "{";
    for (const Field& field : spec.fields) {
      const char* call = field.kind == Kind::text      ? "text"
                         : field.kind == Kind::list    ? "list"
                         : field.kind == Kind::lower   ? "lower"
                         : field.kind == Kind::integer ? "integer"
                                                       : "real";
      if (&field != &spec.fields.front()) out += ", ";
      out += std::string("row.") + call + "(\"" + field.key + "\", " +
             (field.required ? "true" : "false") + ")";
    }
    out += "};\n  });\n";
  }
  return "void read_release_tables(TableReader& in, Knowledge& out) {\n" + out + "}\n\n";
}

// The tables that change with releases as one file, as they stand in data/: src/knowledge/
// updated_tables.h reads it.
std::string release_toml(const fs::path& data) {
  std::string out;
  for (const fs::path& path : toml_files(data)) {
    std::ifstream in(path, std::ios::binary);
    bool wanted = false;
    for (std::string line; std::getline(in, line);) {
      if (!line.empty() && line[0] == '[') {
        const std::string name = line.substr(1, line.find(']') - 1);
        wanted = std::any_of(specs().begin(), specs().end(), [&](const TableSpec& spec) {
          return spec.release && name == spec.name;
        });
      }
      if (wanted && !line.empty() && line[0] != '#') out += line + "\n";
    }
  }
  return out;
}

std::string messages_cpp(const fs::path& folder, std::string& members) {
  Texts all;
  for (const fs::path& path : toml_files(folder)) {
    std::optional<toml::table> root = parse(path);
    if (!root) continue;
    Texts texts;
    flatten(*root, "", "", path.string(), texts);
    text_pairs(texts, path.string(), root->source());  // reports the missing halves with their file
    for (auto& [key, text] : texts) {
      if (!all.emplace(key, text).second)
        report(path.string(), root->source(), "`" + key + "` exists already");
    }
  }
  if (all.empty()) return {};
  members += "  .messages = k_messages,\n";
  return "constexpr TextPair k_messages[] = {\n" + text_pairs(all, folder.string(), {}) + "};\n";
}

}  // namespace
}  // namespace gen

namespace {

int write(const char* path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  out.close();
  if (out) return 0;
  std::fprintf(stderr, "gen-tables: cannot write %s\n", path);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool release = argc == 4 && std::string(argv[2]) == "--release";
  if (argc != 3 && !release) {
    std::fprintf(stderr, "usage: gen-tables DATA_DIR [--release] OUT\n");
    return 2;
  }
  const fs::path data = argv[1];
  std::string members;
  gen::Pool pool;
  std::string arrays = gen::tables_cpp(data, members);
  if (release) {
    if (gen::error_count) return 1;
    return write(argv[3],
                 "format = 1\ndate = " + gen::newest_date + "\n" + gen::release_toml(data));
  }
  arrays += gen::findings_cpp(data, pool, members);
  arrays += gen::vocabulary_cpp(data / "vocabulary.toml", pool, members);
  arrays.insert(0, pool.cpp());
  arrays += gen::messages_cpp(data / "messages", members);
  members += "  .date = " + gen::quote(gen::newest_date) + ",\n";
  if (gen::error_count) return 1;
  return write(argv[2],
               "// Made by gen-tables from data/*.toml. Do not edit.\n#include "
               "\"knowledge/knowledge.h\"\n#include \"knowledge/table_reader.h\"\n\n"
               "namespace cufit::knowledge {\nnamespace {\nusing namespace "
               "std::string_view_literals;\n" +
                   arrays + "}  // namespace\n\n" + gen::readers_cpp() +
                   "const Knowledge& Knowledge::builtin() {\n"
                   "  static constexpr Knowledge tables = {\n" +
                   members + "  };\n  return tables;\n}\n\n}  // namespace cufit::knowledge\n");
}

// SPDX-License-Identifier: Apache-2.0
#include "explain/source_line_map.h"

#include "base/ascii.h"
#include "base/format.h"
#include "facts/facts_fields.h"

namespace cufit::explain {
namespace {

struct Relabel {
  const Texts& texts;
  const std::string& name;

  template <class T>
  void operator()(const char*, T& field) {
    visit(field);
  }
  template <class T>
  void visit(Fact<T>& fact) {
    if (fact.source.kind == SourceKind::claimed) {
      fact.source.detail = texts.place(fact.source.detail, name);
      fact.note = texts.place(fact.note, name);
    }
    if (fact) visit(*fact.value);
  }
  template <class T>
  void visit(std::vector<T>& list) {
    for (T& item : list) visit(item);
  }
  void visit(std::string& text) {
    if (starts_with(text, name + ":")) text = texts.place(text, name);
  }
  template <class T>
  void visit(T& value) {
    if constexpr (std::is_class_v<T>) visit_fields(*this, value);
  }
};

}  // namespace

const Texts::Text* Texts::text_of(uint64_t line) const {
  for (size_t i = texts_.size(); i-- > 0;) {
    if (texts_[i].first_line <= line) return &texts_[i];
  }
  return nullptr;
}

void Texts::place(EvidenceLine& line) const {
  if (line.line == 0) return;
  const Text* text = text_of(line.line);
  line.file = text ? text->name : "stdin";
  if (text) line.line -= text->first_line - 1;
}

std::string Texts::place(const std::string& text, const std::string& name) const {
  const std::string head = name + ":";
  std::string out;
  size_t at = 0;
  for (size_t hit = text.find(head); hit != text.npos; hit = text.find(head, at)) {
    size_t end = hit + head.size();
    uint64_t line = 0;
    while (end < text.size() && is_digit(text[end]) && line < UINT32_MAX)
      line = line * 10 + static_cast<uint64_t>(text[end++] - '0');
    const Text* of = line == 0 ? nullptr : text_of(line);
    out += text.substr(at, hit - at);
    out += of ? format("{}:{}", of->name, line - of->first_line + 1) : text.substr(hit, end - hit);
    at = end;
  }
  return out + text.substr(at);
}

void Texts::place(facts::Facts& facts, const std::string& name) const {
  if (texts_.size() < 2) return;  // the name and the numbers are the text's own
  Relabel relabel{*this, name};
  relabel.visit(facts);
}

}  // namespace cufit::explain

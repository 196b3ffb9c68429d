// SPDX-License-Identifier: Apache-2.0
// list-clues: which clues (data/clues) each text gives, for learn/learn.py. Input: one
// JSON object per line with `evidence`, the text. Output: the names, a line each text.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "explain/explain.h"
#include "knowledge/knowledge.h"

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const nlohmann::json text = nlohmann::json::parse(line, nullptr, false);
    if (!text.is_object() || !text.contains("evidence") || !text["evidence"].is_string()) {
      std::cerr << "list-clues: not a JSON object with `evidence`: " << line.substr(0, 80) << "\n";
      return 2;
    }
    cufit::explain::Explainer explainer(cufit::knowledge::Knowledge::builtin());
    explainer.add(text["evidence"].get<std::string>());
    std::string names;
    for (const std::string& clue : explainer.finish({}).clues)
      names += (names.empty() ? "" : " ") + clue;
    std::cout << names << "\n";
  }
}

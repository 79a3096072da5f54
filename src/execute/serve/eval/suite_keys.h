#pragma once
// Parts of reading a suite: its files, texts, templates, and the maps of a judge and of programs. For suite.cc and
// suite_items.cc.

#include <string>
#include <string_view>
#include <vector>

#include "execute/serve/eval/suite.h"
#include "execute/serve/field_template.h"

namespace systole {

// The files of a suite, and which of them were read.
struct SuiteFiles {
  std::string folder;
  std::vector<EvalFile> read = {};

  std::string beside(const std::string& path) const;
  Result<std::string> text_of(const std::string& path);
};

// Errors that have no place get this one.
template <typename T>
Result<T> at_place(const Where& place, Result<T> read) {
  if (!read.ok() && read.error().where.file.empty()) return std::move(read).error().at(Where(place));
  return read;
}

// Errors: invalid: not a map, or an unknown key.
Status only_known(const Node& map, const std::vector<std::string>& known);
// `otherwise` where the map has no such key.
Result<std::string> text_or(const Node& map, std::string_view key, std::string otherwise);
Result<FieldTemplate> template_of(const Node& node);

// Errors, all at their places: those of the key's file or variable; invalid: keys and values.
Result<JudgeSpec> judge_of(const Node& node, const SuiteFiles& files);
Result<ProgramSpec> program_of(const Node& node);  // of the whole task

}  // namespace systole

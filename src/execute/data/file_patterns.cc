// expand_files: patterns are matched component by component, so `texts/*/a?.txt` lists only the necessary folders.

#include "execute/data/file_patterns.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "execute/data/text_source.h"
#include "ground/store/path.h"

namespace systole {
namespace {

bool has_wildcard(std::string_view name) { return name.find_first_of("*?[") != std::string_view::npos; }

std::string join(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

// The entries of `folder` that match `name`: files if `last`, else folders.
Result<std::vector<std::string>> matches(Store& store, const std::string& folder, const std::string& name, bool last) {
  const std::string path = join(folder, name);
  if (TRY(store.exists(path))) return std::vector<std::string>{path};  // an exact name takes precedence
  if (!has_wildcard(name)) return std::vector<std::string>{};
  std::vector<std::string> found;
  for (std::string entry : TRY(store.list(folder))) {
    const bool is_folder = entry.ends_with('/');
    if (is_folder) entry.pop_back();
    if (is_folder == last || fnmatch(name.c_str(), entry.c_str(), FNM_PERIOD) != 0) continue;
    found.push_back(join(folder, entry));
  }
  return found;
}

}  // namespace

std::string brackets_hint(const std::string& pattern) {
  if (pattern.find('[') == pattern.npos) return "";
  std::string literal;
  for (const char c : pattern) literal += c == '[' ? std::string("[[]") : std::string(1, c);
  return fmt::format("; [...] is one of these characters, and a bracket itself is written [[]: {}", literal);
}

Result<std::vector<std::string>> expand_files(Store& store, const std::vector<std::string>& patterns,
                                              const std::string& prefix) {
  std::vector<std::string> files;
  std::set<std::string> known;
  for (const std::string& pattern : patterns) {
    const std::vector<std::string> names = TRY(split_file_path(pattern));
    std::vector<std::string> found{""};
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::vector<std::string> deeper;
      for (const std::string& folder : found) {
        for (std::string& path : TRY(matches(store, folder, names[i], i + 1 == names.size()))) {
          deeper.push_back(std::move(path));
        }
      }
      found = std::move(deeper);
    }
    if (found.empty()) {
      return error(ErrorKind::not_found, "no file{} '{}{}'", has_wildcard(pattern) ? " matches" : "", prefix, pattern)
          .hinted("check the name; paths are relative to the folder the command runs in" + brackets_hint(pattern));
    }
    for (std::string& path : found) {
      if (!known.insert(path).second) {
        return error(ErrorKind::invalid, "'{}{}' is named twice, the second time by '{}{}'", prefix, path, prefix,
                     pattern)
            .hinted("remove it from one of the patterns: a text read twice would be learnt twice");
      }
      files.push_back(std::move(path));
    }
  }
  return files;
}

}  // namespace systole

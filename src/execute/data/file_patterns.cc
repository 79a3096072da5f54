// expand_files: patterns are matched component by component, so `texts/*/a?.txt` lists only the necessary folders.

#include "execute/data/file_patterns.h"

#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <set>

#include "execute/data/text_source.h"
#include "ground/base/files.h"
#include "ground/store/path.h"

namespace systole {
namespace {

constexpr std::string_view kWild = "*?[";

bool has_wildcard(std::string_view name) { return name.find_first_of(kWild) != name.npos; }

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

// The ending that most files of a folder have; "": it has none, or they have none.
std::string usual_ending(const std::string& folder) {
  std::map<std::string, int> counts;
  std::pair<std::string, int> most{"", 0};
  for (const std::filesystem::path& path : paths_in(folder)) {
    const std::string ending = path.extension().string();
    if (ending.empty() || !is_file(path)) continue;
    if (const int count = ++counts[ending]; count > most.second) most = {ending, count};
  }
  return most.first;
}

std::string literal(std::string_view text) {
  std::string pattern;
  for (const char c : text) pattern += kWild.find(c) == kWild.npos ? std::string(1, c) : fmt::format("[{}]", c);
  return pattern;
}

}  // namespace

Result<std::string> below_root(const std::string& path) {
  std::string below = TRY(absolute_path(path)).substr(1);
  while (below.ends_with('/')) below.pop_back();
  return below;
}

Error folder_for_files(const std::string& folder, std::string_view ending) {
  std::string below = literal(folder);
  while (below.ends_with('/')) below.pop_back();
  const std::string usual = ending.empty() ? "" : usual_ending(folder);
  return error(ErrorKind::invalid, "'{}' is a folder", folder)
      .hinted(fmt::format("name its files: {}/*{}", below, usual.empty() ? ending : usual));
}

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

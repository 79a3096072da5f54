#pragma once
// The values that a document, its environments and --set give for each key, before any value is read. Structural
// errors (unknown keys, sections that are not maps) are kept and reported with all others. Private to this folder.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "describe/spec/workload.h"
#include "ground/base/document.h"

namespace systole {

struct GivenValue {
  Node value;
  Where key;  // where the key itself stands
};

class GivenKeys {
 public:
  explicit GivenKeys(std::string filename) : filename_(std::move(filename)) {}

  // REQUIRES: the document is a map.
  void collect(const Node& document, const WorkloadOptions& options);

  const std::map<std::string, GivenValue>& all() const { return given_; }
  const GivenValue* find(const std::string& path) const;
  bool contains(const std::string& path) const { return given_.contains(path); }
  // Whether another key of the group is given.
  bool has_group(const std::string& group) const;
  // Whether the key at `path` is absent and an unknown key is probably a misspelling of it.
  bool was_meant(const std::string& path) const;
  // The place of the key; else of the innermost enclosing section that the document has; else of the document.
  Where place_of(const std::string& path) const;
  std::map<std::string, std::vector<Where>> places() const;  // of all given keys; for a list, of its items

  std::vector<Error> misspelt, errors;  // misspelt: unknown keys close to known ones

 private:
  using ByPath = std::map<std::string, GivenValue>;
  void collect(const Node& map, const std::string& section, ByPath& into);
  void collect_entry(const Node::Entry& entry, const std::string& section, ByPath& into);
  void collect_environments(const Node& environments, const std::string& wanted);
  void collect_set(const std::string& set);
  void lay_over(const ByPath& overlay);
  void unknown(const Node::Entry& entry, const std::string& section);
  void add(Error error) { errors.push_back(std::move(error)); }

  std::string filename_;
  ByPath given_;
  std::map<std::string, Where> sections_;
  std::size_t unknown_ = 0;      // keys
  std::set<std::string> meant_;  // keys and sections that unknown keys probably meant
};

}  // namespace systole

#pragma once
// What a document, its environments and --set give for each key, before any value is read. What is wrong with it (keys
// that are not there, maps that are none) is kept and told with all else. Private to this folder.

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
  // Whether an unknown key was perhaps to be this one, which is not there.
  bool was_meant(const std::string& path) const;
  // The place of a key, or of the innermost section around it that the document has, or of the document.
  Where place_of(const std::string& path) const;
  std::map<std::string, std::vector<Where>> places() const;  // of what is given; of a list, its items'

  std::vector<Error> misspelt, errors;  // misspelt: unknown keys that are near to known ones

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
  std::set<std::string> meant_;  // keys and sections that an unknown key was perhaps to be
};

}  // namespace systole

#pragma once
// Tracks the fields of an object: each is taken or reported, so nothing is silently ignored.

#include <set>
#include <string>
#include <string_view>

#include "ground/base/document.h"

namespace systole {

class TakenFields {
 public:
  explicit TakenFields(const Node& root) : root_(root) {}

  // "spec.template.spec"; list items by their index. Null if absent. `find` does not mark it as taken.
  const Node* find(std::string_view path) const;
  const Node* take(const std::string& path);
  std::string text(const std::string& path);  // marks it as taken; "" if absent

  // Paths of the outermost fields of which nothing was taken.
  std::vector<std::string> rest() const;

 private:
  bool walk(const Node& node, const std::string& path, std::vector<std::string>& told) const;

  const Node& root_;
  std::set<std::string> taken_;
};

}  // namespace systole

#pragma once
// The fields of an object, of which each is taken or told: nothing is passed over.

#include <set>
#include <string>
#include <string_view>

#include "ground/base/document.h"

namespace systole {

class TakenFields {
 public:
  explicit TakenFields(const Node& root) : root_(root) {}

  // "spec.template.spec"; items of lists by their index. Null where there is none. `find` leaves it to be told.
  const Node* find(std::string_view path) const;
  const Node* take(const std::string& path);
  std::string text(const std::string& path);  // taken; "" where there is none

  // The outermost fields of which nothing was taken, each by its path.
  std::vector<std::string> rest() const;

 private:
  bool walk(const Node& node, const std::string& path, std::vector<std::string>& told) const;

  const Node& root_;
  std::set<std::string> taken_;
};

}  // namespace systole

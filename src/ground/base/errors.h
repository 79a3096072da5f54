#pragma once
// Several errors of one pass as a single Error; and errors of files below a folder.

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/error.h"

namespace systole {

// The first error, with all others in its `others`, flat and in order. REQUIRES: there is one.
inline Error together(std::vector<Error> errors) {
  Error first = std::move(errors.front());
  for (std::size_t i = 1; i < errors.size(); ++i) {
    std::vector<Error> behind = std::exchange(errors[i].others, {});
    first.others.push_back(std::move(errors[i]));
    first.others.insert(first.others.end(), std::make_move_iterator(behind.begin()),
                        std::make_move_iterator(behind.end()));
  }
  return first;
}

// Turns the file names of a store rooted at `root` into paths, in an error and its `others`.
inline Error below(const std::string& root, Error error) {
  if (!error.where.file.empty()) error.where.file = root + "/" + error.where.file;
  for (Error& other : error.others) other = below(root, std::move(other));
  return error;
}

}  // namespace systole

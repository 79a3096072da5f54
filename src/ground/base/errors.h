#pragma once
// Several errors of one reading, told as one.

#include <iterator>
#include <utility>
#include <vector>

#include "ground/base/error.h"

namespace systole {

// The first, with all the others in its `others`, flat and in their order. REQUIRES: there is one.
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

}  // namespace systole

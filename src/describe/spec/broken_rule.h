#pragma once
// A violated rule over several keys.

#include <string>
#include <vector>

#include "ground/base/error.h"

namespace systole {

struct BrokenRule {
  std::vector<std::string> keys;  // the keys involved; the message shows the place of the first
  ErrorKind kind = ErrorKind::invalid;
  std::string message, hint;
};

}  // namespace systole

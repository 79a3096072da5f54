#pragma once
// Messages of planning while it runs. The caller shows them; nothing here prints.

#include <functional>
#include <string>

#include "ground/base/error.h"

namespace systole {

struct PlanMessages {
  std::function<void(const std::string&)> progress;  // the current step
  std::function<void(const Error&)> warning;
};

}  // namespace systole

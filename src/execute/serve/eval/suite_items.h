#pragma once
// The items of a task, made of its examples by its templates. For suite.cc.

#include <cstddef>
#include <vector>

#include "execute/serve/eval/suite.h"
#include "execute/serve/eval/suite_keys.h"
#include "ground/base/document.h"

namespace systole {

// The first `limit` items of the task that `node` describes. `task`: all but them. Errors, all at their places: those
// of the data's files; invalid: templates, examples.
Result<std::vector<EvalItem>> items_of(const Node& node, const EvalTask& task, SuiteFiles& files, std::size_t limit);

}  // namespace systole

#pragma once
// The rule over a t5's relative positions. It applies to documents and to models that are made from specs.

#include <vector>

#include "describe/spec/broken_rule.h"
#include "describe/spec/families/t5.h"

namespace systole {

void check_relative(const T5Spec& spec, std::vector<BrokenRule>& broken);

}  // namespace systole

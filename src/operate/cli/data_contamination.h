#pragma once
// `data show --contamination N`: the held-out text that stands in the training text too.

#include <span>
#include <string>
#include <vector>

#include "execute/data/contamination.h"
#include "ground/base/document.h"

namespace systole::cli {

// `names`: of the sources of a mixture, or one that is empty.
std::string contamination_text(std::span<const Contamination> found, std::span<const std::string> names,
                               std::int64_t words, int width);
Node contamination_node(std::span<const Contamination> found, std::span<const std::string> names, std::int64_t words);

}  // namespace systole::cli

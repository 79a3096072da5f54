#pragma once
// A manifest that Systole rendered: it contains its workload, and its other fields may have been edited since.

#include <string>
#include <string_view>
#include <vector>

#include "operate/import/draft.h"

namespace systole {

// If one of the objects contains the workload that they were rendered from, begins the draft with it and returns true.
bool read_rendered(const std::vector<Node>& objects, Draft& draft);

}  // namespace systole

#pragma once
// A manifest that Systole rendered: its workload is in it, and what somebody changed since in the fields beside it.

#include <string>
#include <string_view>
#include <vector>

#include "operate/import/draft.h"

namespace systole {

// Whether one of the objects has the workload that they were rendered from; the draft begins with that.
bool read_rendered(const std::vector<Node>& objects, Draft& draft);
// The text of a scalar below; "" where there is none.
std::string text_at(const Node& object, std::string_view key);

}  // namespace systole

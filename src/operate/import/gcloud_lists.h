#pragma once
// Lists and maps in values of gcloud's flags.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace systole {

// Items separated by commas, or by D if the text begins with ^D^.
std::vector<std::string> gcloud_list(std::string_view text);
// The same with items NAME=VALUE; an item without '=' has an empty value.
std::vector<std::pair<std::string, std::string>> gcloud_map(std::string_view text);

}  // namespace systole

#pragma once
// YAML that says where its values come from.

#include <string>

#include "ground/base/document.h"

namespace systole {

// As to_yaml, and behind each scalar that has a place (Node::set_place) the file of that place as a comment: a table of
// facts, its date and its source. Reads back equal.
std::string to_sourced_yaml(const Node& node);

}  // namespace systole

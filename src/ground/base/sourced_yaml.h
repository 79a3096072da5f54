#pragma once
// YAML with the sources of its values.

#include <string>

#include "ground/base/document.h"

namespace systole {

// As to_yaml, but each scalar with a place (Node::set_place) is followed by that place's file as a comment: a table of
// facts, its date and its source. Reads back equal.
std::string to_sourced_yaml(const Node& node);

}  // namespace systole

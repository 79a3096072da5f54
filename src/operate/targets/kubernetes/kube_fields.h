#pragma once
// Fields of a Kubernetes object, by the path of their keys.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "ground/base/document.h"

namespace systole {

// The value at a path of keys, or null.
const Node* at(const Node& object, std::initializer_list<std::string_view> keys);
// Its text; "" if absent.
std::string text_at(const Node& object, std::initializer_list<std::string_view> keys);
std::int64_t number_at(const Node& object, std::initializer_list<std::string_view> keys, std::int64_t otherwise = 0);

std::string name_of(const Node& object);
std::string label_of(const Node& object, std::string_view label);  // "" if absent
// The container that runs the ranks: ours by its name, because admission webhooks may insert others before it;
// otherwise the first, whose name some kinds prescribe.
std::string container_of(const Node& pod);

}  // namespace systole

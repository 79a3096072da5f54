#pragma once
// Named values, as plugins take and return them: a topology's options, a device's attributes, a program's costs.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace systole::pjrt {

struct NamedValue {
  std::string name;
  std::variant<std::string, std::int64_t, std::vector<std::int64_t>, float, bool> value;
  bool operator==(const NamedValue&) const = default;
};

std::string to_string(const NamedValue& value);                                          // "coords = [0, 1, 0]"
const NamedValue* find(const std::vector<NamedValue>& values, const std::string& name);  // null if absent

}  // namespace systole::pjrt

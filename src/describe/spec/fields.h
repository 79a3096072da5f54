#pragma once
// Structs to and from JSON maps, both ways from one list of fields each:
//
//   template <typename F> void fields(F& f, Evaluated& e) { f("step", e.step); f("loss", e.loss); ... }
//
// FieldWriter makes the map. FieldReader fills the struct and keeps the first error: a field that is missing, of the
// wrong type, or not in the list. An unset optional is omitted. Non-finite doubles are "nan", "inf", "-inf".

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "describe/spec/run.h"
#include "ground/base/document.h"

namespace systole {

inline Node node_of(bool value) { return value; }
inline Node node_of(std::int64_t value) { return value; }
inline Node node_of(double value) { return value; }
inline Node node_of(const std::string& value) { return value; }
template <typename Tag, typename Rep>
Node node_of(Quantity<Tag, Rep> value) {
  return value.count();
}
inline Node node_of(const std::vector<std::int64_t>& values) { return Node::sequence({values.begin(), values.end()}); }
inline Node node_of(const TimeByCategory& seconds) {
  Node map = Node::map();
  for (int i = 0; i < kNumCategories; ++i) {
    const auto category = static_cast<Category>(i);
    if (seconds[category] != Seconds{}) map.set(name_of(category), seconds[category].count());
  }
  return map;
}
template <typename T>
Node node_of(const std::map<std::string, T>& values) {
  Node map = Node::map();
  for (const auto& [name, value] : values) map.set(name, node_of(value));
  return map;
}
template <typename T>
Node node_of(const std::vector<std::pair<std::string, T>>& values) {
  Node map = Node::map();
  for (const auto& [name, value] : values) map.set(name, node_of(value));
  return map;
}

inline Status read_node(const Node& node, bool& value) {
  value = TRY(node.as_bool());
  return Done{};
}
inline Status read_node(const Node& node, std::int64_t& value) {
  value = TRY(node.as_int());
  return Done{};
}
inline Status read_node(const Node& node, double& value) {
  const std::string& text = node.text();
  if (node.kind() == NodeKind::string && (text == "nan" || text == "inf" || text == "-inf")) {
    const double infinity = std::numeric_limits<double>::infinity();
    value = text == "nan" ? std::numeric_limits<double>::quiet_NaN() : text == "inf" ? infinity : -infinity;
    return Done{};
  }
  value = TRY(node.as_double());
  return Done{};
}
inline Status read_node(const Node& node, std::string& value) {
  value = TRY(node.as_string());
  return Done{};
}
template <typename Tag, typename Rep>
Status read_node(const Node& node, Quantity<Tag, Rep>& value) {
  Rep count{};
  TRY(read_node(node, count));
  value = Quantity<Tag, Rep>(count);
  return Done{};
}
inline Status read_node(const Node& node, std::vector<std::int64_t>& values) {
  if (!node.is_sequence()) return node.wrong("a list of numbers");
  values.clear();
  for (const Node& item : node.items()) TRY(read_node(item, values.emplace_back()));
  return Done{};
}
inline Status read_node(const Node& node, TimeByCategory& seconds) {
  if (!node.is_map()) return node.wrong("seconds by category");
  for (const Node::Entry& entry : node.entries()) {
    const std::optional<Category> category = category_named(entry.key);
    if (!category) return error(ErrorKind::corrupt, "'{}' is no category of time", entry.key).at(entry.where());
    TRY(read_node(entry.value, seconds[*category]));
  }
  return Done{};
}
template <typename T>
Status read_node(const Node& node, std::map<std::string, T>& values) {
  if (!node.is_map()) return node.wrong("a map");
  for (const Node::Entry& entry : node.entries()) TRY(read_node(entry.value, values[entry.key]));
  return Done{};
}
template <typename T>
Status read_node(const Node& node, std::vector<std::pair<std::string, T>>& values) {
  if (!node.is_map()) return node.wrong("a map");
  for (const Node::Entry& entry : node.entries()) {
    TRY(read_node(entry.value, values.emplace_back(entry.key, T{}).second));
  }
  return Done{};
}

class FieldWriter {
 public:
  template <typename T>
  void operator()(const char* name, const T& value) {
    map.set(name, node_of(value));
  }
  template <typename T>
  void operator()(const char* name, const std::optional<T>& value) {
    if (value) map.set(name, node_of(*value));
  }
  Node map = Node::map();
};

class FieldReader {
 public:
  // `also`: known fields of the map that another reader handles.
  FieldReader(const Node& map, std::vector<std::string> also) : map_(map), known_(std::move(also)) {}

  template <typename T>
  void operator()(const char* name, T& value) {
    const Node* node = find(name);
    if (node != nullptr)
      keep(read_node(*node, value));
    else
      keep(error(ErrorKind::corrupt, "'{}' is missing", name).at(map_.where()));
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& value) {
    if (const Node* node = find(name)) keep(read_node(*node, value.emplace()));
  }

  // The first error, of kind corrupt.
  Status finish() {
    for (const Node::Entry& entry : map_.entries()) {
      bool known = false;
      for (const std::string& name : known_) known = known || name == entry.key;
      if (!known) keep(error(ErrorKind::corrupt, "'{}' is no field of it", entry.key).at(entry.where()));
    }
    return std::move(status_);
  }

 private:
  const Node* find(const char* name) {
    known_.emplace_back(name);
    return map_.find(name);
  }
  void keep(Status status) {
    if (status.ok() || !status_.ok()) return;
    Error e = std::move(status).error();
    e.kind = ErrorKind::corrupt;
    status_ = std::move(e);
  }
  const Node& map_;
  std::vector<std::string> known_;
  Status status_;
};

// Struct to map, and map to struct.
template <typename Struct>
Node written(Struct value) {
  FieldWriter writer;
  fields(writer, value);
  return std::move(writer.map);
}
template <typename Struct>
Result<Struct> read_fields(const Node& map, std::vector<std::string> also = {}) {
  if (!map.is_map()) return error(ErrorKind::corrupt, "expected a map, found {}", map.describe()).at(map.where());
  Struct value;
  FieldReader reader(map, std::move(also));
  fields(reader, value);
  TRY(reader.finish());
  return value;
}

}  // namespace systole

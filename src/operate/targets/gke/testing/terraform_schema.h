#pragma once
// Checks a resource against the schema of Terraform's provider (data/schemas/terraform-google-*.json). For tests.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ground/base/text_file.h"
#include "operate/targets/gke/testing/hcl_reader.h"

namespace systole {

class TerraformSchema {
 public:
  explicit TerraformSchema(const std::string& file)
      : all_(nlohmann::json::parse(read_text_file(file).value())["resource_schemas"]) {}

  // The schema violations, one per line; empty: none.
  std::string wrong(const ReadBlock& resource) const {
    if (resource.type != "resource" || resource.labels.size() != 2) return "no resource\n";
    if (!all_.contains(resource.labels[0])) return resource.labels[0] + " is not known\n";
    std::string said;
    check(all_[resource.labels[0]]["block"], resource, resource.labels[0], true, said);
    return said;
  }
  // Whether the attribute exists, so that others may refer to it.
  bool has(const std::string& type, const std::string& attribute) const {
    return all_.contains(type) && all_[type]["block"]["attributes"].contains(attribute);
  }

 private:
  static bool is_of(const nlohmann::json& type, const nlohmann::json& value) {
    if (value.is_object() && (value.contains("refers") || value.contains("template"))) return true;
    if (type == "string") return value.is_string();
    if (type == "number") return value.is_number();
    if (type == "bool") return value.is_boolean();
    if (!type.is_array()) return false;
    if (type[0] == "map")
      return value.is_object() && std::ranges::all_of(value, [&](const auto& v) { return is_of(type[1], v); });
    return value.is_array() && std::ranges::all_of(value, [&](const auto& v) { return is_of(type[1], v); });
  }
  static bool flag(const nlohmann::json& attribute, const char* name) { return attribute.value(name, false); }

  static void check(const nlohmann::json& schema, const ReadBlock& block, const std::string& at, bool outer,
                    std::string& said) {
    const nlohmann::json none = nlohmann::json::object();
    const nlohmann::json& attributes = schema.contains("attributes") ? schema["attributes"] : none;
    const nlohmann::json& blocks = schema.contains("block_types") ? schema["block_types"] : none;
    for (const auto& [name, value] : block.attributes.items()) {
      if (outer && (name == "depends_on" || name == "count" || name == "for_each" || name == "provider")) continue;
      if (!attributes.contains(name)) {
        said += at + " has no attribute " + name + "\n";
        continue;
      }
      const nlohmann::json& attribute = attributes[name];
      if (!flag(attribute, "required") && !flag(attribute, "optional")) said += at + "." + name + " is computed\n";
      if (!is_of(attribute["type"], value)) said += at + "." + name + " is of another type\n";
      if (attribute.contains("x-enum") && value.is_string() &&
          std::ranges::find(attribute["x-enum"], value) == attribute["x-enum"].end())
        said += at + "." + name + " is never " + value.get<std::string>() + "\n";
    }
    for (const auto& [name, attribute] : attributes.items())
      if (flag(attribute, "required") && !block.attributes.contains(name)) said += at + "." + name + " is missing\n";
    std::map<std::string, int> counts;
    for (const ReadBlock& inner : block.blocks) {
      ++counts[inner.type];
      if (!blocks.contains(inner.type) || !inner.labels.empty())
        said += at + " has no block " + inner.type + "\n";
      else
        check(blocks[inner.type]["block"], inner, at + "." + inner.type, false, said);
    }
    for (const auto& [name, type] : blocks.items()) {
      if (counts[name] < type.value("min_items", 0)) said += at + "." + name + " is missing\n";
      if (type.contains("max_items") && counts[name] > type["max_items"].get<int>())
        said += at + "." + name + " is there too often\n";
    }
  }

  nlohmann::json all_;
};

}  // namespace systole

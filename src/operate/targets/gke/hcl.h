#pragma once
// HCL 2, the language of Terraform, as typed blocks that print as `terraform fmt` does. There is no free text, so no
// value can become an expression, an attribute or a block.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace systole {

class HclValue {
 public:
  HclValue(const char* text) : HclValue(std::string_view(text)) {}
  HclValue(std::string_view text);  // any characters, including NUL; unprintable ones are escaped
  HclValue(const std::string& text) : HclValue(std::string_view(text)) {}
  HclValue(bool value) : text_(value ? "true" : "false") {}
  HclValue(std::int64_t value) : text_(std::to_string(value)) {}
  HclValue(int value) : HclValue(static_cast<std::int64_t>(value)) {}

  // An attribute of another block: google_compute_network.main.id, var.project. REQUIRES: names joined by '.'.
  static HclValue reference(std::string_view path);
  // A template: text around a reference's value: "${var.project}.svc.id.goog". REQUIRES: as reference.
  static HclValue joined(std::string_view path, std::string_view after, std::string_view before = "");
  static HclValue list(const std::vector<HclValue>& values);
  // Keys are quoted.
  static HclValue map(const std::vector<std::pair<std::string, HclValue>>& entries);

  // `indent`: of the line that the value begins on.
  std::string print(std::size_t indent) const;

 private:
  HclValue() = default;
  enum class Kind { scalar, list, map } kind_ = Kind::scalar;
  std::string text_;  // as printed
  std::vector<HclValue> items_;
  std::vector<std::string> keys_;  // of a map, as printed
};

struct HclBlock;

struct HclAttribute {
  std::string name;
  HclValue value;
  std::string comment = {};  // a line above; empty: none
};

// resource "google_compute_network" "main" { attributes, then blocks }. REQUIRES: names are [a-z_][a-z0-9_]*.
struct HclBlock {
  std::string type;
  std::vector<std::string> labels;  // any text
  std::vector<HclAttribute> attributes = {};
  std::vector<HclBlock> blocks = {};
  std::string comment = {};  // lines above

  HclBlock& set(std::string name, HclValue value, std::string above = "") {
    attributes.push_back({std::move(name), std::move(value), std::move(above)});
    return *this;
  }
  // Returns the new inner block.
  HclBlock& add(std::string inner, std::vector<HclAttribute> with = {});
};

std::string to_hcl(const std::vector<HclBlock>& blocks);

}  // namespace systole

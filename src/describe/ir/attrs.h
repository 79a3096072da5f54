#pragma once
// The attributes of a node: a few named constants, sorted by name so that equal sets print and compare alike.
// Text: {causal=true, dim=1, eps=1e-05, perm=[1, 0], spec="bk,kn->bn"}.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ground/base/error.h"
#include "ground/tensor/dtype.h"

namespace systole {

using Ints = std::vector<std::int64_t>;
using Attr = std::variant<bool, std::int64_t, double, std::string, Ints>;

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, Attr>> entries);

  void set(std::string name, Attr value);
  const Attr* find(std::string_view name) const;

  // The value of an attribute. Errors: Failure(invalid) when it is absent or of another kind. get_double also accepts
  // an integer.
  bool get_bool(std::string_view name) const;
  std::int64_t get_int(std::string_view name) const;
  double get_double(std::string_view name) const;
  const std::string& get_string(std::string_view name) const;
  const Ints& get_ints(std::string_view name) const;
  DType get_dtype(std::string_view name) const;  // stored as its name

  bool flag(std::string_view name) const {
    const Attr* a = find(name);
    return a != nullptr && std::get<bool>(*a);
  }

  using Entries = std::vector<std::pair<std::string, Attr>>;
  const Entries& entries() const;
  bool empty() const { return entries_ == nullptr; }
  bool operator==(const Attrs& other) const { return entries_ == other.entries_ || entries() == other.entries(); }

 private:
  std::shared_ptr<const Entries> entries_;  // shared by copies, `set` makes a new one; null: none
};

std::string to_string(const Attr& attr);
std::string to_string(const Attrs& attrs);  // "" when empty

}  // namespace systole

#include "describe/ir/attrs.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace systole {
namespace {

template <typename T>
const T& typed(const Attrs& attrs, std::string_view name, const char* kind) {
  const Attr* attr = attrs.find(name);
  if (attr == nullptr) fail(error(ErrorKind::invalid, "attribute '{}' is missing", name));
  const T* value = std::get_if<T>(attr);
  if (value == nullptr) fail(error(ErrorKind::invalid, "attribute '{}' must be {}", name, kind));
  return *value;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string number(double value) {
  std::string text = fmt::format("{}", value);  // shortest form that reads back
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

void set_in(Attrs::Entries& entries, std::string name, Attr value) {
  auto at = std::lower_bound(entries.begin(), entries.end(), name,
                             [](const auto& entry, const std::string& key) { return entry.first < key; });
  if (at != entries.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    entries.insert(at, {std::move(name), std::move(value)});
  }
}

}  // namespace

Attrs::Attrs(std::initializer_list<std::pair<std::string, Attr>> given) {
  if (given.size() == 0) return;
  Entries entries;
  entries.reserve(given.size());
  for (const auto& [name, value] : given) set_in(entries, name, value);
  entries_ = std::make_shared<const Entries>(std::move(entries));
}

const Attrs::Entries& Attrs::entries() const {
  static const Entries none;
  return entries_ ? *entries_ : none;
}

void Attrs::set(std::string name, Attr value) {
  Entries changed = entries();
  set_in(changed, std::move(name), std::move(value));
  entries_ = std::make_shared<const Entries>(std::move(changed));
}

const Attr* Attrs::find(std::string_view name) const {
  for (const auto& [key, value] : entries()) {
    if (key == name) return &value;
  }
  return nullptr;
}

bool Attrs::get_bool(std::string_view name) const { return typed<bool>(*this, name, "true or false"); }
std::int64_t Attrs::get_int(std::string_view name) const { return typed<std::int64_t>(*this, name, "an integer"); }
const std::string& Attrs::get_string(std::string_view name) const { return typed<std::string>(*this, name, "text"); }
const Ints& Attrs::get_ints(std::string_view name) const { return typed<Ints>(*this, name, "a list of integers"); }

double Attrs::get_double(std::string_view name) const {
  const Attr* attr = find(name);
  if (attr != nullptr && std::holds_alternative<std::int64_t>(*attr))
    return static_cast<double>(std::get<std::int64_t>(*attr));
  return typed<double>(*this, name, "a number");
}

DType Attrs::get_dtype(std::string_view name) const {
  const std::string& text = get_string(name);
  const std::optional<DType> dtype = dtype_named(text);
  if (!dtype) fail(error(ErrorKind::invalid, "attribute '{}': no element type is named '{}'", name, text));
  return *dtype;
}

std::string to_string(const Attr& attr) {
  if (const bool* b = std::get_if<bool>(&attr)) return *b ? "true" : "false";
  if (const std::int64_t* i = std::get_if<std::int64_t>(&attr)) return std::to_string(*i);
  if (const double* d = std::get_if<double>(&attr)) return number(*d);
  if (const std::string* s = std::get_if<std::string>(&attr)) return quoted(*s);
  return fmt::format("[{}]", fmt::join(std::get<Ints>(attr), ", "));
}

std::string to_string(const Attrs& attrs) {
  if (attrs.empty()) return "";
  std::string text = "{";
  for (const auto& [name, value] : attrs.entries()) {
    if (text.size() > 1) text += ", ";
    text += name + "=" + to_string(value);
  }
  return text + "}";
}

}  // namespace systole

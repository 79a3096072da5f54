#pragma once
// The fields of a request's JSON object, read one by one; those that nobody has read are refused.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ground/base/document.h"
#include "ground/base/nearest.h"

namespace systole {

using TextOrTokens = std::variant<std::string, std::vector<std::int32_t>>;

// Borrows the object and the names. Errors name the field as their key.
class Fields {
 public:
  explicit Fields(const Node& body) : body_(body) {}

  // Null if it is absent or null: both mean the default.
  const Node* find(std::string_view name) {
    known_.push_back(name);
    const Node* value = body_.find(name);
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  Result<const Node*> required(std::string_view name) {
    if (const Node* value = find(name)) return value;
    return key_error(ErrorKind::invalid, std::string(name), "missing").coded(ErrorCode::missing_key);
  }
  Result<std::string> text(std::string_view name) { return named(name, TRY(required(name))->as_string()); }
  Result<std::int64_t> integer(std::string_view name, std::int64_t otherwise, std::int64_t lowest,
                               std::int64_t highest) {
    const Node* value = find(name);
    if (value == nullptr) return otherwise;
    return named(name, value->as_int(lowest, highest));
  }
  Result<double> number(std::string_view name, double otherwise, double lowest, double highest) {
    const Node* value = find(name);
    if (value == nullptr) return otherwise;
    const double number = TRY(named(name, value->as_double()));
    if (number < lowest || number > highest)
      return key_error(ErrorKind::invalid, std::string(name), "{} is not between {} and {}", number, lowest, highest);
    return number;
  }
  Result<bool> truth(std::string_view name, bool otherwise) {
    const Node* value = find(name);
    if (value == nullptr) return otherwise;
    return named(name, value->as_bool());
  }
  // A text, a list of tokens, or a list of both, at least one.
  Result<std::vector<TextOrTokens>> texts_or_tokens(std::string_view name) {
    using All = std::vector<TextOrTokens>;
    const Node& value = *TRY(required(name));
    if (value.kind() == NodeKind::string) return All{value.text()};
    if (!value.is_sequence() || value.items().empty())
      return named(name, Result<All>(value.wrong("text, a list of texts, tokens or lists of tokens")));
    if (value.items()[0].kind() == NodeKind::number) return All{TRY(tokens(name, value))};
    All all;
    for (const Node& item : value.items()) {
      if (item.is_sequence())
        all.emplace_back(TRY(tokens(name, item)));
      else if (item.kind() == NodeKind::string)
        all.emplace_back(item.text());
      else
        return named(name, Result<All>(item.wrong("text or a list of tokens")));
    }
    return all;
  }
  // A field that is accepted only where it changes nothing.
  Status only(std::string_view name, const Node& neutral) {
    const Node* value = find(name);
    if (value == nullptr || *value == neutral || (value->is_map() && value->entries().empty())) return {};
    return key_error(ErrorKind::unsupported, std::string(name), "{} is not supported", value->describe());
  }
  Status nothing_else() const {
    for (const std::string& key : body_.keys()) {
      if (std::ranges::find(known_, key) != known_.end()) continue;
      const std::vector<std::string> names(known_.begin(), known_.end());
      return key_error(ErrorKind::invalid, key, "unknown field")
          .coded(ErrorCode::unknown_key)
          .hinted(nearest_hint(key, names));
    }
    return {};
  }

  // Tokens by their numbers; `name`: the field that has the list.
  static Result<std::vector<std::int32_t>> tokens(std::string_view name, const Node& list) {
    std::vector<std::int32_t> tokens;
    for (const Node& item : list.items())
      tokens.push_back(static_cast<std::int32_t>(TRY(named(name, item.as_int(0, INT32_MAX)))));
    return tokens;
  }
  template <typename T>
  static Result<T> named(std::string_view name, Result<T> value) {
    if (value.ok()) return value;
    Error error = std::move(value).error();
    error.message = fmt::format("{}: {}", name, error.message);
    error.key = name;
    error.where = {};  // a place in the body of a request says nothing to a client
    if (error.kind == ErrorKind::does_not_fit) error.kind = ErrorKind::invalid;  // the client's to change, not ours
    return error;
  }

 private:
  const Node& body_;
  std::vector<std::string_view> known_;
};

}  // namespace systole

#include "describe/spec/secret.h"

#include <algorithm>

namespace systole {
namespace {

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool is_word(std::string_view text, std::string_view beside_letters) {
  return !text.empty() && text[0] != '-' && std::ranges::all_of(text, [&](char c) {
    return is_letter_or_digit(c) || beside_letters.find(c) != beside_letters.npos;
  });
}

// The text before the first '/' and the text after it; without '/' the second is "".
std::pair<std::string_view, std::string_view> cut(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == text.npos) return {text, {}};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

}  // namespace

bool is_variable_name(std::string_view text) { return is_word(text, "_") && !(text[0] >= '0' && text[0] <= '9'); }

std::optional<SecretReference> read_secret_reference(std::string_view text) {
  using Source = SecretReference::Source;
  const std::size_t colon = text.find(':');
  if (colon == text.npos) return std::nullopt;
  const std::string_view kind = text.substr(0, colon), rest = text.substr(colon + 1);
  SecretReference reference;
  if (kind == "env") {
    if (!is_variable_name(rest)) return std::nullopt;
    reference.name = rest;
    return reference;
  }
  if (kind == "file") {
    const bool printable = std::ranges::none_of(rest, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    if (!rest.starts_with('/') || rest.ends_with('/') || !printable) return std::nullopt;
    reference.source = Source::file;
    reference.name = rest;
    return reference;
  }
  const auto [first, behind] = cut(rest);
  if (kind == "kubernetes") {
    if (!is_word(first, "-.") || !is_word(behind, "-._")) return std::nullopt;
    reference.source = Source::kubernetes;
    reference.name = first;
    reference.key = behind;
    return reference;
  }
  if (kind == "secret-manager") {
    const auto [name, version] = cut(behind);
    const bool versioned = behind.find('/') != behind.npos;
    if (!is_word(first, "-.:") || !is_word(name, "-_") || (versioned && !is_word(version, "-_"))) return std::nullopt;
    reference.source = Source::secret_manager;
    reference.project = first;
    reference.name = name;
    reference.version = versioned ? version : "latest";
    return reference;
  }
  return std::nullopt;
}

}  // namespace systole

#include "describe/spec/word_codecs.h"

#include <algorithm>

namespace systole {

Codec valid_text_codec(Field<std::string> at, const char* expected, std::function<bool(const std::string&)> is_valid,
                       std::string hint) {
  Codec codec = text_codec(at);
  codec.type = expected;
  codec.read = [at, expected, is_valid = std::move(is_valid), hint = std::move(hint), read = codec.read](
                   const Node& node, Workload& w) -> Status {
    TRY(read(node, w));
    if (is_valid(at(w))) return {};
    return error(ErrorKind::invalid, "'{}' is no {}", at(w), expected).at(node.where()).hinted(hint);
  };
  return codec;
}

Codec word_codec(Field<std::string> at, std::string_view beside_letters, const char* expected) {
  const auto is_valid = [beside_letters](const std::string& text) {
    const auto is_one = [beside_letters](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             beside_letters.find(c) != beside_letters.npos;
    };
    return !text.empty() && text[0] != '-' && std::ranges::all_of(text, is_one);
  };
  return valid_text_codec(at, expected, is_valid,
                          fmt::format("letters, digits and {}; no '-' in front", beside_letters));
}

Codec named_texts_codec(Field<std::map<std::string, std::string>> at, std::string (*wrong)(const std::string&),
                        const char* hint) {
  Codec codec = labels_codec(at);
  codec.read = [wrong, hint, read = codec.read](const Node& node, Workload& w) -> Status {
    TRY(read(node, w));
    for (const Node::Entry& entry : node.entries()) {
      const std::string said = wrong(entry.key);
      if (!said.empty()) return error(ErrorKind::invalid, "'{}' {}", entry.key, said).at(entry.where()).hinted(hint);
    }
    return {};
  };
  return codec;
}

}  // namespace systole

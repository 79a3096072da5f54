#include "ground/base/xml.h"

#include <algorithm>

#include "ground/base/number_from.h"
#include "ground/base/utf8.h"

namespace systole {
namespace {

constexpr std::size_t kDeepest = 32, kMostElements = 200'000;
constexpr std::string_view kSpaces = " \t\r\n";

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == ':' || static_cast<unsigned char>(c) >= 0x80;
}

std::string_view local_name(std::string_view name) { return name.substr(name.rfind(':') + 1); }

class Reader {
 public:
  Reader(std::string_view text, std::string_view what) : text_(text), what_(what) {}

  Result<XmlElement> read() {
    if (text_.starts_with("\xef\xbb\xbf")) at_ += 3;
    if (rest().starts_with("<?xml")) TRY(past("?>"));
    TRY(skip_between());
    XmlElement root = TRY(element(1));
    TRY(skip_between());
    if (at_ != text_.size()) return wrong("more follows its root");
    return root;
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }
  Error wrong(std::string_view why) const {
    return error(ErrorKind::corrupt, "{} is no XML: at byte {} {}", what_, at_, why);
  }
  void skip_spaces() { at_ = std::min(text_.find_first_not_of(kSpaces, at_), text_.size()); }
  Status past(std::string_view end) {
    const std::size_t found = text_.find(end, at_);
    if (found == text_.npos) return wrong(fmt::format("there is no '{}' behind", end));
    at_ = found + end.size();
    return {};
  }
  Status skip_between() {
    for (skip_spaces(); rest().starts_with("<!--"); skip_spaces()) TRY(past("-->"));
    return {};
  }
  Status take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return wrong(fmt::format("there is no '{}'", c));
    ++at_;
    return {};
  }
  Result<std::string_view> name() {
    std::size_t end = at_;
    while (end < text_.size() && is_name_char(text_[end])) ++end;
    if (end == at_) return wrong("there is no name");
    const std::string_view taken = text_.substr(at_, end - at_);
    at_ = end;
    return taken;
  }

  // At '<'.
  Result<XmlElement> element(std::size_t depth) {
    if (depth > kDeepest) return wrong("it is nested too deep");
    if (++elements_ > kMostElements) return wrong("it has too many elements");
    TRY(take('<'));
    const std::string_view full = TRY(name());
    XmlElement read{std::string(local_name(full)), {}, {}};
    TRY(attributes());
    if (rest().starts_with("/>")) {
      at_ += 2;
      return read;
    }
    TRY(take('>'));
    TRY(content(read, depth));
    at_ += 2;
    if (TRY(name()) != full) return wrong("another element is closed");
    skip_spaces();
    TRY(take('>'));
    return read;
  }

  Status attributes() {
    while (true) {
      const std::size_t before = at_;
      skip_spaces();
      if (at_ == text_.size() || text_[at_] == '>' || text_[at_] == '/') return {};
      if (at_ == before) return wrong("there is no space");
      TRY(name());
      skip_spaces();
      TRY(take('='));
      skip_spaces();
      if (at_ == text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) return wrong("there is no quote");
      const char quote = text_[at_++];
      TRY(past(std::string_view(&quote, 1)));
    }
  }

  // Up to its "</".
  Status content(XmlElement& into, std::size_t depth) {
    while (true) {
      const std::size_t end = text_.find_first_of("<&", at_);
      if (end == text_.npos) return wrong("an element is not closed");
      into.text.append(text_, at_, end - at_);
      at_ = end;
      if (text_[at_] == '&') {
        TRY(entity(into.text));
      } else if (rest().starts_with("</")) {
        return {};
      } else if (rest().starts_with("<!--")) {
        TRY(past("-->"));
      } else if (rest().starts_with("<![CDATA[")) {
        const std::size_t begin = at_ + 9;
        TRY(past("]]>"));
        into.text.append(text_, begin, at_ - 3 - begin);
      } else {
        into.children.push_back(TRY(element(depth + 1)));
      }
    }
  }

  Status entity(std::string& into) {
    const std::size_t end = std::min(text_.find(';', at_), text_.size());
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    constexpr std::pair<std::string_view, char> kKnown[] = {
        {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    for (const auto& [known, c] : kKnown) {
      if (inside != known) continue;
      into += c;
      at_ = end + 1;
      return {};
    }
    const std::uint32_t code = inside.size() < 12 && inside.starts_with("#") ? code_of(inside.substr(1)) : 0;
    if (code == 0) return wrong("there is an entity that XML itself does not have");
    append_utf8(into, code);
    at_ = end + 1;
    return {};
  }

  // 0: no character.
  static std::uint32_t code_of(std::string_view number) {
    std::uint32_t code = 0;
    const int base = number.starts_with("x") ? 16 : 10;
    if (base == 16) number.remove_prefix(1);
    const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), code, base);
    const bool good = failed == std::errc() && end == number.data() + number.size() && code <= 0x10ffff &&
                      (code < 0xd800 || code > 0xdfff);
    return good ? code : 0;
  }
  std::string_view text_, what_;
  std::size_t at_ = 0, elements_ = 0;
};

}  // namespace

const XmlElement* XmlElement::find(std::string_view child) const {
  const auto found = std::ranges::find(children, child, &XmlElement::name);
  return found == children.end() ? nullptr : &*found;
}

std::string XmlElement::text_of(std::string_view child) const {
  const XmlElement* found = find(child);
  return found == nullptr ? "" : found->text;
}

Result<XmlElement> parse_xml(std::string_view text, std::string_view what) { return Reader(text, what).read(); }

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '&') {
      escaped += "&amp;";
    } else {
      escaped += static_cast<unsigned char>(c) < 0x20 && kSpaces.find(c) == kSpaces.npos ? '?' : c;
    }
  }
  return escaped;
}

}  // namespace systole

#include "ground/net/http_request_head.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "ground/base/letter_case.h"
#include "ground/base/utf8.h"
#include "ground/net/url.h"

namespace systole {
namespace {

constexpr std::string_view kDigits = "0123456789", kEnd = "\r\n";

bool is_token(std::string_view text) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kOthers.find(c) != kOthers.npos;
  });
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

bool is_value(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return is_control(c) && c != '\t'; });
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// Whether a list such as "keep-alive, Upgrade" has this element, in lower case.
bool lists(std::string_view list, std::string_view element) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (lower_case(trimmed(list.substr(0, comma))) == element) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

// Several fields with one name are one list (RFC 9110, 5.3).
bool wants_close(const HttpHeaders& headers) {
  return std::ranges::any_of(
      headers, [](const auto& field) { return field.first == "connection" && lists(field.second, "close"); });
}

std::optional<HttpFault> read_line(std::string_view line, const HttpHeadLimits& limits, HttpRequestHead& head) {
  const std::size_t space = std::min(line.find(' '), line.size()), end = line.rfind(' ');
  if (end == line.npos || end <= space || !is_token(line.substr(0, space)))
    return HttpFault{400, "the first line is not METHOD TARGET HTTP/1.1"};
  const std::string_view version = line.substr(end + 1);
  std::string_view target = line.substr(space + 1, end - space - 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0")
    return version.starts_with("HTTP/") ? HttpFault{505, "this server speaks HTTP/1.1"}
                                        : HttpFault{400, "the first line is not METHOD TARGET HTTP/1.1"};
  if (target.size() > limits.target)
    return HttpFault{414, fmt::format("the request's target has more than {} bytes", limits.target)};
  if (!std::ranges::all_of(target, [](char c) { return c > 0x20 && c < 0x7f; }))
    return HttpFault{400, "the request's target has bytes that must be percent-encoded"};
  head.method = line.substr(0, space);
  head.is_1_0 = version == "HTTP/1.0";
  const std::string whole = target.starts_with("http://") || target.starts_with("https://")
                                ? UrlParts(std::string(target)).path
                                : std::string(target);
  const std::size_t mark = std::min(whole.find('?'), whole.size());
  head.path = whole.substr(0, mark);
  head.query = whole.substr(std::min(mark + 1, whole.size()));
  if (!head.path.starts_with('/')) return HttpFault{400, "the request's target is no path"};
  return {};
}

std::optional<HttpFault> read_field(std::string_view line, HttpHeaders& headers) {
  const std::size_t colon = std::min(line.find(':'), line.size());
  const std::string_view name = line.substr(0, colon);
  if (colon == line.size() || !is_token(name)) return HttpFault{400, "a header is not NAME: VALUE"};
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!is_value(value) || find_invalid_utf8(value))
    return HttpFault{400, fmt::format("the value of header {} is not text", lower_case(name))};
  headers.emplace_back(lower_case(name), value);
  return {};
}

// What the fields mean for the body and the connection.
std::optional<HttpFault> read_meaning(HttpRequestHead& head) {
  for (const char* name : {"host", "content-length", "transfer-encoding", "authorization"})
    if (std::ranges::count(head.headers, name, &HttpHeaders::value_type::first) > 1)
      return HttpFault{400, fmt::format("header {} stands there more than once", name)};
  if (!head.is_1_0 && head.header("host") == nullptr) return HttpFault{400, "header host is absent"};
  head.has_coding = head.header("transfer-encoding") != nullptr;
  if (const std::string* length = head.header("content-length")) {
    if (head.has_coding) return HttpFault{400, "transfer-encoding and content-length exclude each other"};
    if (length->empty() || length->find_first_not_of(kDigits) != length->npos)
      return HttpFault{400, "header content-length is no count of bytes"};
    std::uint64_t bytes = 0;
    const bool fits = std::from_chars(length->data(), length->data() + length->size(), bytes).ec == std::errc{};
    head.length = fits ? bytes : std::numeric_limits<std::uint64_t>::max();
  }
  const std::string* expected = head.header("expect");
  head.expects_continue = !head.is_1_0 && expected != nullptr && lower_case(*expected) == "100-continue";
  head.keeps_alive = !head.is_1_0 && !wants_close(head.headers);
  return {};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// The first segment of "/a/b", which becomes "/b".
std::string_view take_segment(std::string_view& path) {
  const std::size_t end = std::min(path.find('/', 1), path.size());
  const std::string_view segment = path.substr(1, end - 1);
  path.remove_prefix(end);
  return segment;
}

}  // namespace

std::optional<HttpFault> read_header_fields(std::string_view text, const HttpHeadLimits& limits, HttpHeaders& headers) {
  std::size_t end = 0;
  for (; (end = text.find(kEnd)) != 0; text.remove_prefix(end + 2)) {
    if (headers.size() == limits.headers)
      return HttpFault{431, fmt::format("there are more than {} headers", limits.headers)};
    if (std::optional<HttpFault> fault = read_field(text.substr(0, end), headers)) return *std::move(fault);
  }
  if (text.size() > 2) return HttpFault{400, "a head ends in its empty line"};
  return {};
}

std::variant<HttpRequestHead, HttpFault> parse_request_head(std::string_view text, const HttpHeadLimits& limits) {
  if (!text.ends_with("\r\n\r\n")) return HttpFault{400, "a head ends in an empty line"};
  HttpRequestHead head;
  const std::size_t end = text.find(kEnd);
  if (std::optional<HttpFault> fault = read_line(text.substr(0, end), limits, head)) return *std::move(fault);
  if (std::optional<HttpFault> fault = read_header_fields(text.substr(end + 2), limits, head.headers))
    return *std::move(fault);
  if (std::optional<HttpFault> fault = read_meaning(head)) return *std::move(fault);
  return head;
}

HttpFault head_too_large(std::string_view begin, const HttpHeadLimits& limits) {
  if (begin.substr(0, std::min(begin.find(kEnd), begin.size())).size() > limits.target)
    return {414, fmt::format("the request's target has more than {} bytes", limits.target)};
  return {431, fmt::format("the request's headers have more than {} bytes", limits.head)};
}

bool is_header(std::string_view name, std::string_view value) { return is_token(name) && is_value(value); }

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1, low = high >= 0 ? hex_digit(text[i + 2]) : -1;
      if (low < 0) return {};
      c = static_cast<char>(16 * high + low);
      i += 2;
    }
    if (is_control(c)) return {};
    decoded += c;
  }
  if (find_invalid_utf8(decoded)) return {};
  return decoded;
}

std::optional<HttpHeaders> match_path(std::string_view pattern, std::string_view path) {
  HttpHeaders parameters;
  while (pattern.starts_with('/') && path.starts_with('/')) {
    const std::string_view rest = path.substr(1);
    std::string_view wanted = take_segment(pattern), given = take_segment(path);
    const bool is_parameter = wanted.starts_with('{') && wanted.ends_with('}');
    if (is_parameter) wanted = wanted.substr(1, wanted.size() - 2);
    const bool takes_all = is_parameter && wanted.ends_with('*');
    if (takes_all) {
      wanted.remove_suffix(1);
      given = rest;
      path = {};
    }
    const std::optional<std::string> text = percent_decoded(given);
    if (!text || (is_parameter ? text->empty() : *text != wanted)) return {};
    if (is_parameter) parameters.emplace_back(wanted, *text);
  }
  if (!pattern.empty() || !path.empty()) return {};
  return parameters;
}

}  // namespace systole

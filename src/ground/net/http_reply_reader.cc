#include "ground/net/http_reply_reader.h"

#include <algorithm>
#include <charconv>

#include "ground/base/letter_case.h"
#include "ground/base/number_from.h"

namespace systole {
namespace {

constexpr HttpHeadLimits kLimits;
constexpr std::size_t kMostSizeLine = 256;
constexpr std::string_view kEnd = "\r\n", kEndOfHead = "\r\n\r\n";

Error no_reply(std::string_view why) { return error(ErrorKind::io, "this is no HTTP reply: {}", why); }

// The status of "HTTP/1.1 200 OK".
Result<int> status_in(std::string_view line) {
  const int status = line.size() < 12 ? -1 : number_from<int>(line.substr(9, 3)).value_or(-1);
  if (!line.starts_with("HTTP/1.1 ") || status < 0 || (line.size() > 12 && line[12] != ' '))
    return no_reply("its first line is not HTTP/1.1 STATUS");
  if (status < 200 || status > 999) return no_reply("its status is not a final one");
  return status;
}

}  // namespace

Status HttpReplyReader::take(std::string_view bytes) {
  input_ += bytes;
  for (std::size_t before = input_.size() + 1; at_ < input_.size() && at_ != before && phase_ != Phase::whole;) {
    before = at_;
    TRY(advance());
  }
  input_.erase(0, std::exchange(at_, 0));
  if (phase_ == Phase::whole && !input_.empty()) return no_reply("more follows its end");
  return {};
}

Status HttpReplyReader::advance() {
  const std::string_view rest = std::string_view(input_).substr(at_);
  switch (phase_) {
    case Phase::head: {
      const std::size_t end = rest.find(kEndOfHead);
      // Of a head that has not ended, the last bytes may be the first of its end.
      const std::size_t begun = std::min(rest.size(), kEndOfHead.size() - 1);
      if (std::min(end, rest.size() - begun) > kLimits.head) return no_reply("its head is too long");
      if (!rest.starts_with(std::string_view("HTTP/1.1 ").substr(0, rest.size())))
        return no_reply("its first line is not HTTP/1.1 STATUS");
      if (end == rest.npos) return {};
      at_ += end + kEndOfHead.size();
      return read_head(rest.substr(0, end + kEndOfHead.size()));
    }
    case Phase::body:
    case Phase::chunk: take_some(); return {};
    case Phase::size: {
      const std::optional<std::string_view> size = TRY(line(kMostSizeLine));
      return size ? read_size(*size) : Status();
    }
    case Phase::chunk_end: {
      const std::optional<std::string_view> empty = TRY(line(0));
      if (empty) phase_ = Phase::size;
      return {};
    }
    case Phase::trailers: {
      const std::optional<std::string_view> field = TRY(line(kLimits.head - trailers_));
      if (!field) return {};
      trailers_ += std::min(field->size() + kEnd.size(), kLimits.head - trailers_);
      if (field->empty()) phase_ = Phase::whole;
      return {};
    }
    case Phase::whole: return {};
  }
  return {};
}

Status HttpReplyReader::read_head(std::string_view text) {
  const std::size_t end = text.find(kEnd);
  head_.status = TRY(status_in(text.substr(0, end)));
  if (const std::optional<HttpFault> fault = read_header_fields(text.substr(end + kEnd.size()), kLimits, head_.headers))
    return no_reply(fault->message);
  for (const char* name : {"content-length", "transfer-encoding"})
    if (std::ranges::count(head_.headers, name, &HttpHeaders::value_type::first) > 1)
      return no_reply(fmt::format("header {} stands there more than once", name));
  const std::string* length = head_.header("content-length");
  const std::string* coding = head_.header("transfer-encoding");
  const bool has_none = head_.status == 204 || head_.status == 304;
  if (length != nullptr && coding != nullptr)
    return no_reply("transfer-encoding and content-length exclude each other");
  if (coding != nullptr && lower_case(*coding) != "chunked") return no_reply("its body is encoded");
  if (length != nullptr) head_.length = number_from<std::uint64_t>(*length);
  if (length != nullptr && !head_.length) return no_reply("header content-length is no count of bytes");
  if (length == nullptr && coding == nullptr && !has_none) return no_reply("the length of its body is not known");
  if (has_none) head_.length = 0;
  has_head_ = true;
  left_ = head_.length.value_or(0);
  phase_ = !head_.length ? Phase::size : left_ == 0 ? Phase::whole : Phase::body;
  return {};
}

Result<std::optional<std::string_view>> HttpReplyReader::line(std::size_t most) {
  const std::string_view rest = std::string_view(input_).substr(at_);
  const std::size_t end = rest.find(kEnd);
  // Of a line that has not ended, the last byte may be the first of its end.
  const bool ends_later = rest.size() <= most || (rest.size() == most + 1 && rest.back() == '\r');
  if (end == rest.npos && ends_later) return std::optional<std::string_view>();
  if (end == rest.npos || end > most) return no_reply("a line of its chunks is too long");
  at_ += end + kEnd.size();
  return std::optional(rest.substr(0, end));
}

// "1a;name=value": hexadecimal, and extensions that nobody reads.
Status HttpReplyReader::read_size(std::string_view line) {
  const std::string_view digits = line.substr(0, line.find_first_of("; \t"));
  std::uint64_t size = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), size, 16);
  if (digits.empty() || failed != std::errc() || end != digits.data() + digits.size())
    return no_reply("the size of a chunk is no number");
  left_ = size;
  phase_ = size == 0 ? Phase::trailers : Phase::chunk;
  return {};
}

void HttpReplyReader::take_some() {
  const std::size_t some = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input_.size() - at_));
  body_.append(input_, at_, some);
  at_ += some;
  left_ -= some;
  if (left_ == 0) phase_ = phase_ == Phase::body ? Phase::whole : Phase::chunk_end;
}

}  // namespace systole

#include "describe/lengths/read_lengths.h"

#include <optional>

#include "ground/base/document.h"
#include "ground/base/number_from.h"

namespace systole {
namespace {

constexpr std::int64_t kLongest = 0xffffffff, kMostTokens = std::int64_t{1} << 60;
constexpr const char* kForms = "a line for each length, as 128,1000; or JSON, as {\"128\": 1000}";

class Reading {
 public:
  explicit Reading(const std::string& filename) : filename_(filename) {}

  Status add(std::int64_t length, std::int64_t count, const Where& where) {
    if (length < 1 || length > kLongest)
      return error(ErrorKind::invalid, "a length of {}: from 1 to {} is one", length, kLongest).at(where);
    if (count < 0) return error(ErrorKind::invalid, "a count of {} of length {}", count, length).at(where);
    std::int64_t tokens = 0;
    if (__builtin_mul_overflow(length, count, &tokens) || tokens > kMostTokens - rows_.tokens())
      return error(ErrorKind::invalid, "more than 2^60 tokens together").at(where);
    rows_.add(length, count);
    return {};
  }

  Status add_line(std::string_view line, int number) {
    std::vector<std::string_view> words;
    for (std::size_t at = 0; (at = line.find_first_not_of(" ,;\t\r", at)) != line.npos;) {
      const std::size_t end = std::min(line.find_first_of(" ,;\t\r", at), line.size());
      words.push_back(line.substr(at, end - at));
      at = end;
    }
    if (words.empty() || words[0].starts_with('#')) return {};
    const std::optional<std::int64_t> length = number_from(words[0]);
    const std::optional<std::int64_t> count =
        words.size() == 2 ? number_from(words[1]) : std::optional(std::int64_t{1});
    const bool first = !seen_;
    seen_ = true;
    if (!length && first) return {};  // the names of the columns
    if (!length || !count || words.size() > 2)
      return error(ErrorKind::invalid, "expected a length and a count, found '{}'", line)
          .at({filename_, number, 0})
          .hinted(kForms);
    return add(*length, *count, {filename_, number, 0});
  }

  Status add_json(const Node& node) {
    if (const Node* inner = node.find("lengths")) return add_json(*inner);
    for (const Node::Entry& entry : node.entries()) {
      const std::optional<std::int64_t> length = number_from(entry.key);
      if (!length) return error(ErrorKind::invalid, "'{}' is no length", entry.key).at(entry.where()).hinted(kForms);
      const std::int64_t count = TRY(entry.value.as_int());
      TRY(add(*length, count, entry.where()));
    }
    for (const Node& item : node.items()) {
      if (item.is_scalar()) {
        const std::int64_t length = TRY(item.as_int());
        TRY(add(length, 1, item.where()));
        continue;
      }
      if (item.items().size() != 2) return item.wrong("[length, count]").hinted(kForms);
      const std::int64_t length = TRY(item.items()[0].as_int());
      const std::int64_t count = TRY(item.items()[1].as_int());
      TRY(add(length, count, item.where()));
    }
    return {};
  }

  Result<LengthHistogram> finish() && {
    if (rows_.count() > 0) return std::move(rows_);
    return error(ErrorKind::invalid, "there is no length in it").at({filename_}).hinted(kForms);
  }

 private:
  const std::string& filename_;
  LengthHistogram rows_;
  bool seen_ = false;
};

}  // namespace

Result<LengthHistogram> read_lengths(std::string_view text, const std::string& filename) {
  Reading reading(filename);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != text.npos && (text[begin] == '{' || text[begin] == '[')) {
    const Node document = TRY(parse_json(text, filename));
    TRY(reading.add_json(document));
    return std::move(reading).finish();
  }
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    TRY(reading.add_line(text.substr(at, end - at), ++number));
    at = end + 1;
  }
  return std::move(reading).finish();
}

}  // namespace systole

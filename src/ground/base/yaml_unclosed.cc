#include "ground/base/yaml_unclosed.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "ground/base/errors.h"
#include "ground/base/tree_builder.h"

namespace systole {
namespace {

namespace messages = YAML::ErrorMsg;

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kByteOrder = "\xef\xbb\xbf";  // byte order mark; yaml-cpp's marks do not count it

std::size_t offset_of(std::string_view text, const YAML::Mark& mark) {
  const std::size_t before = text.starts_with(kByteOrder) ? kByteOrder.size() : 0;
  return std::min(text.size(), before + static_cast<std::size_t>(std::max(mark.pos, 0)));
}

// The offset of a node's text, after its tag and anchor.
std::size_t behind_properties(std::string_view text, std::size_t at) {
  for (;;) {
    at = std::min(text.find_first_not_of(kSpace, at), text.size());
    if (at == text.size() || (text[at] != '&' && text[at] != '!' && text[at] != '#')) return at;
    at = text.find_first_of(text[at] == '#' ? "\n" : kSpace, at);
  }
}

// The offset of the quote that closes the one at `at`; npos if there is none.
std::size_t closing_quote(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (++at; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (text[at] == quote) {
      if (quote == '"' || at + 1 == text.size() || text[at + 1] != quote) return at;
      ++at;
    }
  }
  return std::string_view::npos;
}

// The opening quote of a scalar, if it has one.
std::optional<std::size_t> quote_of(std::string_view text, const YAML::Mark& mark) {
  const std::size_t at = behind_properties(text, offset_of(text, mark));
  if (at == text.size() || (text[at] != '"' && text[at] != '\'')) return std::nullopt;
  return at;
}

Error not_closed(std::string_view text, std::string_view file, std::size_t at, std::string_view what, char closes) {
  return error(ErrorKind::invalid, "the {} that opens here is never closed", what)
      .at(place_of(text, file, at))
      .hinted(fmt::format("close it with {}", closes));
}

// Scans a document for the places of brackets and quotes only.
class Places : public YAML::EventHandler {
 public:
  struct Bracket {
    char opens = 0, closes = 0;
    YAML::Mark mark;
  };
  struct TooDeep {};

  Places(std::string_view text, int depth) : text_(text), depth_(depth) {}

  // Returns the exception of yaml-cpp, if it throws.
  std::optional<YAML::Exception> run() {
    std::istringstream stream{std::string(text_)};
    try {
      YAML::Parser parser(stream);
      parser.HandleNextDocument(*this);
    } catch (const YAML::Exception& thrown) { return thrown; } catch (const TooDeep&) {
      open_.clear();
    }
    return std::nullopt;
  }

  // The brackets still open at the end, and the quote that the last character of the text closes.
  const std::vector<Bracket>& open() const { return open_; }
  std::optional<std::size_t> last_quote() const { return last_quote_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string&) override {
    const auto quote = quote_of(text_, mark);
    if (quote && closing_quote(text_, *quote) + 1 == text_.size()) last_quote_ = quote;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value style) override {
    begin({'[', ']', mark}, style);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value style) override {
    begin({'{', '}', mark}, style);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapEnd() override { end(); }

 private:
  void begin(Bracket bracket, YAML::EmitterStyle::value style) {
    if (static_cast<int>(in_flow_.size()) >= depth_) throw TooDeep();
    const std::size_t at = behind_properties(text_, offset_of(text_, bracket.mark));
    in_flow_.push_back(style == YAML::EmitterStyle::Flow && at < text_.size() && text_[at] == bracket.opens);
    if (in_flow_.back()) open_.push_back(bracket);
  }
  void end() {
    if (in_flow_.back()) open_.pop_back();
    in_flow_.pop_back();
  }

  std::string_view text_;
  int depth_;
  std::vector<bool> in_flow_;  // per open list or map: whether a bracket opened it
  std::vector<Bracket> open_;
  std::optional<std::size_t> last_quote_;
};

bool is(const YAML::Exception& thrown, std::initializer_list<const char*> messages) {
  return std::find(messages.begin(), messages.end(), thrown.msg) != messages.end();
}

// yaml-cpp reached the end of the document, or the next one, inside a quote. The quote that would close it there
// identifies it.
std::optional<Error> quote_before(std::string_view text, std::string_view file, const YAML::Mark& mark, int depth) {
  for (const char quote : {'"', '\''}) {
    const std::string closed = std::string(text.substr(0, offset_of(text, mark))) + quote;
    Places places(closed, depth);
    (void)places.run();
    if (const auto at = places.last_quote(); at && closed[*at] == quote)
      return not_closed(text, file, *at, "quote", quote);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Error> unclosed_quote(std::string_view text, std::string_view file, const YAML::Mark& mark) {
  const auto at = quote_of(text, mark);
  if (!at || closing_quote(text, *at) != std::string_view::npos) return std::nullopt;
  return not_closed(text, file, *at, "quote", text[*at]);
}

std::optional<Error> find_unclosed(std::string_view text, std::string_view file, const YAML::Exception* thrown,
                                   int depth) {
  if (thrown != nullptr && is(*thrown, {messages::EOF_IN_SCALAR, messages::DOC_IN_SCALAR}))
    return quote_before(text, file, thrown->mark, depth);
  if (thrown != nullptr && !is(*thrown, {messages::END_OF_MAP_FLOW, messages::END_OF_SEQ_FLOW})) return std::nullopt;
  Places places(text, depth);
  const std::optional<YAML::Exception> ends = places.run();
  if (!ends || places.open().empty() || !is(*ends, {messages::END_OF_MAP_FLOW, messages::END_OF_SEQ_FLOW}))
    return std::nullopt;
  const Places::Bracket& bracket = places.open().back();
  const std::size_t opens = behind_properties(text, offset_of(text, bracket.mark));
  const std::size_t at = offset_of(text, ends->mark);
  if (text.find_first_not_of(kSpace, at) == std::string_view::npos)
    return not_closed(text, file, opens, fmt::format("'{}'", bracket.opens), bracket.closes);
  return error(ErrorKind::invalid, "not valid YAML: expected ',' or '{}'", bracket.closes)
      .at(place_of(text, file, at))
      .hinted(fmt::format("close the '{}' of line {} with '{}', or put ',' between what is in it", bracket.opens,
                          place_of(text, file, opens).line, bracket.closes));
}

}  // namespace systole

// JSON by nlohmann's event parser, which is not recursive. The parser reports no positions, so our input iterator
// counts bytes and notes where the last token began.

#include <nlohmann/json.hpp>

#include "ground/base/tree_builder.h"

namespace systole {
namespace {

class Tracker {
 public:
  void see(char c) {
    ++col_;
    if (in_string_) {
      if (!escaped_ && c == '"') in_string_ = in_token_ = false;
      escaped_ = !escaped_ && c == '\\';
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ',' || c == ':' || c == ']' || c == '}') {
      in_token_ = false;
    } else if (!in_token_ || c == '[' || c == '{') {
      line_of_token_ = line_;
      col_of_token_ = col_;
      in_string_ = c == '"';
      escaped_ = false;
      in_token_ = c != '[' && c != '{';
    }
    if (c == '\n') {
      ++line_;
      col_ = 0;
    }
  }
  int line_of_token() const { return line_of_token_; }
  int col_of_token() const { return col_of_token_; }
  int line() const { return line_; }
  int col() const { return col_; }

 private:
  int line_ = 1, col_ = 0;
  int line_of_token_ = 1, col_of_token_ = 1;
  bool in_token_ = false, in_string_ = false, escaped_ = false;
};

class Watched {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Watched(const char* at, Tracker* tracker) : at_(at), tracker_(tracker) {}
  reference operator*() const { return *at_; }
  Watched& operator++() {
    tracker_->see(*at_++);
    return *this;
  }
  Watched operator++(int) {
    Watched before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Watched& other) const { return at_ == other.at_; }
  bool operator!=(const Watched& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  Tracker* tracker_;
};

// Keeps the last part of "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error while ...".
std::string plain_reason(std::string_view what) {
  const std::size_t column = what.find("column ");
  const std::size_t colon = what.find(": ", column == std::string_view::npos ? 0 : column);
  return std::string(colon == std::string_view::npos ? what : what.substr(colon + 2));
}

class Events {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  Events(std::string_view file, int depth, const Tracker& tracker) : tree_(file, depth), tracker_(tracker) {}

  bool null() { return scalar(NodeKind::null, ""); }
  bool boolean(bool value) { return scalar(NodeKind::boolean, value ? "true" : "false"); }
  bool number_integer(number_integer_t value) { return scalar(NodeKind::number, std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) { return scalar(NodeKind::number, std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) { return scalar(NodeKind::number, text); }
  bool string(string_t& text) { return scalar(NodeKind::string, std::move(text)); }
  bool binary(binary_t&) { return refuse(error(ErrorKind::internal, "binary in a text")); }
  bool start_object(std::size_t) { return open(NodeKind::map); }
  bool start_array(std::size_t) { return open(NodeKind::sequence); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(string_t& text) {
    Status added = tree_.key(std::move(text), here());
    return added.ok() || refuse(std::move(added).error());
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& thrown) {
    return refuse(error(ErrorKind::invalid, "not valid JSON: {}", plain_reason(thrown.what()))
                      .at(tree_.where(tracker_.line(), std::max(tracker_.col(), 1))));
  }

  const std::optional<Error>& refused() const { return refused_; }
  TreeBuilder& tree() { return tree_; }

 private:
  Node::Place here() const { return tree_.place(tracker_.line_of_token(), tracker_.col_of_token()); }
  bool refuse(Error error) {
    refused_ = std::move(error);
    return false;
  }
  bool scalar(NodeKind kind, std::string text) {
    tree_.add(Node(kind, std::move(text), here()));
    return true;
  }
  bool open(NodeKind kind) {
    Status opened = tree_.open(kind, here());
    return opened.ok() || refuse(std::move(opened).error());
  }
  bool close() {
    tree_.add(tree_.close());
    return true;
  }

  TreeBuilder tree_;
  const Tracker& tracker_;
  std::optional<Error> refused_;
};

}  // namespace

Result<Node> parse_json(std::string_view text, std::string_view file, const ParseLimits& limits) {
  TRY(check_text(text, file, limits.bytes));
  Tracker tracker;
  Events events(file, limits.depth, tracker);
  const Watched begin(text.data(), &tracker), end(text.data() + text.size(), &tracker);
  if (!nlohmann::json::sax_parse(begin, end, &events)) {
    CHECK(events.refused().has_value(), "JSON refused without a reason in '{}'", file);
    return *events.refused();
  }
  return events.tree().take_root();
}

}  // namespace systole

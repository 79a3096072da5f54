#include "execute/serve/grammar/regex.h"

#include <algorithm>
#include <optional>

#include "ground/base/number_from.h"
#include "ground/base/utf8.h"

namespace systole::grammar {
namespace {

CodePoints digits() { return CodePoints({{'0', '9'}}); }
CodePoints word() { return CodePoints({{'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {'_', '_'}}); }
CodePoints space() { return CodePoints({{'\t', '\r'}, {' ', ' '}}); }
CodePoints complement(const CodePoints& set) { return CodePoints::all().without(set); }

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

class RegexParser {
 public:
  explicit RegexParser(std::string_view text) : text_(text) {}

  Result<Regex> parse() {
    if (text_.size() > Regex::kMostText)
      return error(ErrorKind::invalid, "a pattern of {} bytes, at most {} may be given", text_.size(),
                   Regex::kMostText);
    if (find_invalid_utf8(text_)) return error(ErrorKind::invalid, "the pattern is not UTF-8");
    do {
      Regex::Alternative alternative;
      alternative.at_begin = take("^");
      alternative.part = TRY(sequence(0));
      alternative.at_end = take("$");
      regex_.alternatives_.push_back(alternative);
    } while (take("|"));
    if (at_ < text_.size())
      return here(ErrorKind::invalid, text_[at_] == ')' ? "a ) without its (" : "$ before the end");
    return std::move(regex_);
  }

 private:
  using Kind = Regex::Part::Kind;

  Error here(ErrorKind kind, std::string_view what) const {
    return error(kind, "{} at character {} of the pattern", what, at_ + 1);
  }
  bool is_at(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool take(std::string_view what) {
    if (!is_at(what)) return false;
    at_ += what.size();
    return true;
  }
  std::size_t add(Regex::Part part) {
    regex_.parts_.push_back(std::move(part));
    return regex_.parts_.size() - 1;
  }

  Result<std::size_t> choice(int depth) {
    if (depth > Regex::kMostDepth) return here(ErrorKind::invalid, "groups are nested too deep");
    Regex::Part part{.kind = Kind::choice};
    do { part.of.push_back(TRY(sequence(depth))); } while (take("|"));
    return add(std::move(part));
  }

  Result<std::size_t> sequence(int depth) {
    Regex::Part part;
    while (at_ < text_.size() && !is_at("|") && !is_at(")") && !is_at("$")) part.of.push_back(TRY(repeated(depth)));
    return add(std::move(part));
  }

  Result<std::size_t> repeated(int depth) {
    const std::size_t once = TRY(atom(depth));
    Regex::Part part{.kind = Kind::repeat, .of = {once}};
    if (take("*"))
      part.most = -1;
    else if (take("+"))
      part.least = 1, part.most = -1;
    else if (take("?"))
      part.most = 1;
    else if (is_at("{"))
      TRY(bounds(part));
    else
      return once;
    if (is_at("+")) return here(ErrorKind::unsupported, "possessive repetition");
    take("?");
    if (is_at("*") || is_at("{")) return here(ErrorKind::invalid, "nothing to repeat");
    return add(std::move(part));
  }

  Status bounds(Regex::Part& part) {
    const std::size_t end = text_.find('}', at_);
    if (end == text_.npos) return here(ErrorKind::invalid, "a { without its }");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    const std::size_t comma = inside.find(',');
    const auto least = number_from<int>(inside.substr(0, comma));
    auto most = least;
    if (comma != inside.npos) most = comma + 1 == inside.size() ? -1 : number_from<int>(inside.substr(comma + 1));
    const bool has_minus = inside.find('-') != inside.npos;
    if (!least || !most || has_minus || (*most >= 0 && *most < *least))
      return here(ErrorKind::invalid, "bounds that are none of {n}, {n,} and {n,m}");
    if (std::max(*least, *most) > Regex::kMostRepeats) return here(ErrorKind::invalid, "more than 10000 repetitions");
    part.least = *least;
    part.most = *most;
    at_ = end + 1;
    return {};
  }

  Result<std::size_t> atom(int depth) {
    if (take("(")) {
      if (take("?")) {
        if (take("<") || take("P<")) {
          if (is_at("=") || is_at("!")) return here(ErrorKind::unsupported, "look-behind");
          const std::size_t end = text_.find('>', at_);
          if (end == text_.npos) return here(ErrorKind::invalid, "a group's name without its >");
          at_ = end + 1;
        } else if (!take(":")) {
          return here(ErrorKind::unsupported, is_at("=") || is_at("!") ? "look-ahead" : "a group with flags");
        }
      }
      const std::size_t inside = TRY(choice(depth + 1));
      if (is_at("$")) return here(ErrorKind::unsupported, "$ within a group");
      if (!take(")")) return here(ErrorKind::invalid, "a ( without its )");
      return inside;
    }
    if (take("[")) return add({.kind = Kind::set, .set = TRY(class_of())});
    if (take(".")) return add({.kind = Kind::set, .set = complement(CodePoints({{'\n', '\n'}, {'\r', '\r'}}))});
    if (is_at("^")) return here(ErrorKind::unsupported, "^ after the beginning");
    if (is_at("*") || is_at("+") || is_at("?") || is_at("{")) return here(ErrorKind::invalid, "nothing to repeat");
    if (take("\\")) return add({.kind = Kind::set, .set = TRY(escape(false))});
    return add({.kind = Kind::set, .set = one(literal())});
  }

  static CodePoints one(std::uint32_t code) { return CodePoints({{code, code}}); }
  std::uint32_t literal() {
    const auto [code, length] = code_point_at(text_.substr(at_));
    at_ += length;
    return code;
  }

  // Behind a backslash: the set that it stands for.
  Result<CodePoints> escape(bool in_class) {
    if (at_ == text_.size()) return here(ErrorKind::invalid, "a \\ without what it escapes");
    const char c = text_[at_];
    if (static_cast<unsigned char>(c) >= 0x80) return one(literal());
    ++at_;
    switch (c) {
      case 'd': return digits();
      case 'D': return complement(digits());
      case 'w': return word();
      case 'W': return complement(word());
      case 's': return space();
      case 'S': return complement(space());
      case 't': return one('\t');
      case 'n': return one('\n');
      case 'r': return one('\r');
      case 'f': return one('\f');
      case 'v': return one('\v');
      case '0': return one(0);
      case 'x': return hexadecimal(2);
      case 'u': return hexadecimal(4);
      case 'b':
        if (in_class) return one('\b');
        break;
      default: break;
    }
    if (!is_letter(c) && !(c >= '1' && c <= '9')) return one(static_cast<std::uint32_t>(c));
    --at_;
    return here(ErrorKind::unsupported, fmt::format("\\{}", c));
  }
  Result<CodePoints> hexadecimal(std::size_t count) {
    std::uint32_t code = 0;
    const std::string_view text = text_.substr(at_, count);
    const char* const end = text.data() + text.size();
    if (text.size() < count || std::from_chars(text.data(), end, code, 16).ptr != end)
      return here(ErrorKind::invalid, fmt::format("not {} hexadecimal digits", count));
    if (code >= 0xD800 && code <= 0xDFFF) return here(ErrorKind::unsupported, "a surrogate");
    at_ += count;
    return one(code);
  }

  Result<CodePoints> class_of() {
    const bool negated = take("^");
    std::vector<CodeRange> ranges;
    while (!is_at("]")) {
      if (at_ == text_.size()) return here(ErrorKind::invalid, "a [ without its ]");
      const CodePoints first = take("\\") ? TRY(escape(true)) : one(literal());
      const bool is_range = is_at("-") && !is_at("-]") && at_ + 1 < text_.size();
      if (!is_range) {
        ranges.insert(ranges.end(), first.ranges().begin(), first.ranges().end());
        continue;
      }
      take("-");
      const CodePoints last = take("\\") ? TRY(escape(true)) : one(literal());
      const std::optional<std::uint32_t> begin = single(first), end = single(last);
      if (!begin || !end || *begin > *end) return here(ErrorKind::invalid, "a range of a class that is none");
      ranges.push_back({*begin, *end});
    }
    take("]");
    const CodePoints set(std::move(ranges));
    return negated ? complement(set) : set;
  }
  static std::optional<std::uint32_t> single(const CodePoints& set) {
    if (set.ranges().size() != 1 || set.ranges()[0].first != set.ranges()[0].last) return std::nullopt;
    return set.ranges()[0].first;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Regex regex_;
};

Result<Regex> Regex::parse(std::string_view pattern) { return RegexParser(pattern).parse(); }

class Regex::Adder {
 public:
  using State = AutomatonBuilder::State;
  Adder(const std::vector<Part>& parts, AutomatonBuilder& builder, Spelling spelling)
      : parts_(parts), builder_(builder), spelling_(spelling) {}

  // An empty set has no text: its end is behind nothing.
  State add(std::size_t number, State from) {
    const Part& part = parts_[number];
    // Repetitions of nothing add no state, so these count as well.
    if (++added_ > static_cast<std::int64_t>(AutomatonBuilder::kMostNfaStates) * 4) builder_.give_up();
    if (builder_.full()) return from;
    if (part.kind == Part::Kind::set) return set(part.set, from);
    if (part.kind == Part::Kind::sequence) {
      for (const std::size_t each : part.of) from = add(each, from);
      return from;
    }
    if (part.kind == Part::Kind::choice) {
      std::vector<State> ends;
      for (const std::size_t each : part.of) ends.push_back(add(each, from));
      return builder_.joined(ends);
    }
    return repeat(part, from);
  }
  State any(State from) {
    const State loop = builder_.state(), end = builder_.state();
    builder_.skip(from, loop);
    add_code_point(builder_, loop, CodePoints::all(), spelling_, loop);
    builder_.skip(loop, end);
    return end;
  }

 private:
  State set(const CodePoints& set, State from) {
    const State to = builder_.state();
    add_code_point(builder_, from, set, spelling_, to);
    return to;
  }
  State repeat(const Part& part, State from) {
    for (int i = 0; i < part.least && !builder_.full(); ++i) from = add(part.of[0], from);
    if (part.most < 0) {
      const State loop = builder_.state(), end = builder_.state();
      builder_.skip(from, loop);
      builder_.skip(add(part.of[0], loop), loop);
      builder_.skip(loop, end);
      return end;
    }
    std::vector<State> ends{from};
    for (int i = part.least; i < part.most && !builder_.full(); ++i) ends.push_back(from = add(part.of[0], from));
    return builder_.joined(ends);
  }

  const std::vector<Part>& parts_;
  AutomatonBuilder& builder_;
  Spelling spelling_;
  std::int64_t added_ = 0;
};

AutomatonBuilder::State Regex::add(AutomatonBuilder& builder, AutomatonBuilder::State from, Spelling spelling,
                                   Match match) const {
  Adder adder(parts_, builder, spelling);
  std::vector<AutomatonBuilder::State> ends;
  for (const Alternative& alternative : alternatives_) {
    AutomatonBuilder::State at = from;
    if (match == Match::search && !alternative.at_begin) at = adder.any(at);
    at = adder.add(alternative.part, at);
    if (match == Match::search && !alternative.at_end) at = adder.any(at);
    ends.push_back(at);
  }
  return builder.joined(ends);
}

}  // namespace systole::grammar

#include "execute/serve/grammar/json_rules.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "ground/base/utf8.h"

namespace systole::grammar {
namespace {

constexpr std::int64_t kMostInteger = 9'999'999'999'999'999;

const CodePoints& unescaped() {
  static const CodePoints set = CodePoints::all().without(CodePoints({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}));
  return set;
}

}  // namespace

JsonRules::Rule JsonRules::rule(Known known) {
  std::optional<Rule>& rule = rules_[known];
  if (rule) return *rule;
  rule = builder_.declare();  // before what it consists of: values nest
  builder_.finish(*rule, finish(known, builder_.begin_of(*rule)));
  return *rule;
}

JsonRules::State JsonRules::finish(Known known, State begin) {
  const State end = builder_.state();
  switch (known) {
    case kGap: {
      builder_.range(begin, ' ', ' ', end);
      State at = builder_.text(begin, "\n");
      builder_.skip(at, end);
      for (int i = 0; i < kMostIndent; ++i) {
        const State next = builder_.state();
        builder_.range(at, ' ', ' ', next);
        builder_.range(at, '\t', '\t', next);
        builder_.skip(at = next, end);
      }
      return end;
    }
    case kString: {
      const State inside = builder_.text(begin, "\"");
      builder_.range(characters(inside), '"', '"', end);
      return end;
    }
    case kCharacter: {
      add_code_point(builder_, begin, unescaped(), Spelling::plain, end);
      const State slash = builder_.text(begin, "\\");
      for (const char c : std::string_view("\"\\/bfnrt"))
        builder_.range(slash, static_cast<std::uint8_t>(c), static_cast<std::uint8_t>(c), end);
      const auto hex = [&](State from, std::string_view digits, State to) {
        for (const char c : digits)
          builder_.range(from, static_cast<std::uint8_t>(c), static_cast<std::uint8_t>(c), to);
      };
      static constexpr std::string_view kHex = "0123456789abcdefABCDEF";
      const State u = builder_.text(slash, "u");
      const auto three = [&](std::string_view first, State from) {
        const State a = builder_.state(), b = builder_.state(), c = builder_.state();
        hex(from, first, a);
        hex(a, kHex, b);
        hex(b, kHex, c);
        return c;
      };
      const State high = builder_.state();
      hex(u, "0123456789abcefABCEF", high);
      const State d = builder_.state();
      hex(u, "dD", d);
      builder_.skip(three(kHex, high), end);
      builder_.skip(three("01234567", d), end);
      const State low = builder_.state();
      hex(builder_.text(three("89abAB", d), "\\u"), "dD", low);
      builder_.skip(three("cdefCDEF", low), end);
      return end;
    }
    case kValue: {
      for (const char* word : {"true", "false", "null"}) builder_.skip(builder_.text(begin, word), end);
      for (const State each : {string(begin), number(begin), object(begin), array(begin)}) builder_.skip(each, end);
      return end;
    }
    case kObject: {
      const State open = builder_.text(begin, "{"), name = builder_.state(), member = builder_.state();
      builder_.skip(gap(open), name);
      builder_.skip(value(colon(string(name))), member);
      builder_.skip(gap(builder_.text(member, ",")), name);
      builder_.skip(builder_.text(gap(open), "}"), end);
      builder_.skip(builder_.text(gap(member), "}"), end);
      return end;
    }
    case kArray: {
      const State open = builder_.text(begin, "["), item = builder_.state(), next = builder_.state();
      builder_.skip(gap(open), item);
      builder_.skip(value(item), next);
      builder_.skip(gap(builder_.text(next, ",")), item);
      builder_.skip(builder_.text(gap(open), "]"), end);
      builder_.skip(builder_.text(gap(next), "]"), end);
      return end;
    }
    case kKnown: break;
  }
  return end;
}

// Any number of them; the states of one, in a circle, for speed.
JsonRules::State JsonRules::characters(State from) {
  const State loop = builder_.state(), end = builder_.state();
  builder_.skip(from, loop);
  builder_.skip(finish(kCharacter, loop), loop);
  builder_.skip(loop, end);
  return end;
}

JsonRules::State JsonRules::gap(State from) {
  const State to = builder_.state();
  builder_.skip(from, to);
  builder_.call(from, rule(kGap), to);
  return to;
}

JsonRules::State JsonRules::colon(State from) {
  const State at = builder_.text(from, ":"), to = builder_.state();
  builder_.skip(at, to);
  builder_.range(at, ' ', ' ', to);
  return to;
}

JsonRules::State JsonRules::string(State from) { return builder_.call(from, rule(kString)); }
JsonRules::State JsonRules::character(State from) { return builder_.call(from, rule(kCharacter)); }
JsonRules::State JsonRules::value(State from) { return builder_.call(from, rule(kValue)); }
JsonRules::State JsonRules::object(State from) { return builder_.call(from, rule(kObject)); }
JsonRules::State JsonRules::array(State from) { return builder_.call(from, rule(kArray)); }

JsonRules::State JsonRules::digits(State from, int least, int most) {
  std::vector<State> ends;
  if (least == 0) ends.push_back(from);
  for (int i = 1; i <= most; ++i) {
    const State to = builder_.state();
    builder_.range(from, '0', '9', to);
    if (i >= least) ends.push_back(to);
    from = to;
  }
  return builder_.joined(ends);
}

JsonRules::State JsonRules::number(State from, bool negative) {
  const State sign = builder_.state();
  builder_.skip(from, sign);
  if (negative) builder_.range(from, '-', '-', sign);
  const State first = builder_.state();
  builder_.range(sign, '1', '9', first);
  const State whole = builder_.joined(std::array{builder_.text(sign, "0"), digits(first, 0, 15)});
  const State part = builder_.joined(std::array{whole, digits(builder_.text(whole, "."), 1, 16)});
  const State e = builder_.state(), power = builder_.state();
  builder_.range(part, 'e', 'e', e);
  builder_.range(part, 'E', 'E', e);
  builder_.skip(e, power);
  builder_.range(e, '+', '+', power);
  builder_.range(e, '-', '-', power);
  return builder_.joined(std::array{part, digits(power, 1, 2)});
}

JsonRules::State JsonRules::literal(State from, const Node& value) {
  if (builder_.full()) return from;
  if (value.is_scalar()) return builder_.text(from, to_json(value));
  from = builder_.text(from, value.is_map() ? "{" : "[");
  bool first = true;
  for (const Node::Entry& entry : value.entries()) {
    from = gap(std::exchange(first, false) ? from : builder_.text(from, ","));
    from = literal(colon(builder_.text(from, to_json(Node(entry.key)))), entry.value);
  }
  for (const Node& item : value.items())
    from = literal(gap(std::exchange(first, false) ? from : builder_.text(from, ",")), item);
  return builder_.text(gap(from), value.is_map() ? "}" : "]");
}

// Both have the same number of digits.
JsonRules::State JsonRules::digits_between(State from, std::string_view lowest, std::string_view highest) {
  // While the digits are those of a bound, what follows is bounded by it.
  std::map<std::pair<bool, bool>, State> at{{{true, true}, from}};
  for (std::size_t i = 0; i < lowest.size(); ++i) {
    std::map<std::pair<bool, bool>, State> next;
    for (const auto& [tight, state] : at) {
      const char least = tight.first ? lowest[i] : '0', most = tight.second ? highest[i] : '9';
      for (char digit = least; digit <= most; ++digit) {
        const std::pair<bool, bool> then{tight.first && digit == least, tight.second && digit == most};
        const auto [found, is_new] = next.try_emplace(then, 0);
        if (is_new) found->second = builder_.state();
        builder_.range(state, static_cast<std::uint8_t>(digit), static_cast<std::uint8_t>(digit), found->second);
      }
    }
    at = std::move(next);
  }
  std::vector<State> ends;
  for (const auto& [tight, state] : at) ends.push_back(state);
  return builder_.joined(ends);
}

JsonRules::State JsonRules::natural(State from, std::uint64_t lowest, std::uint64_t highest) {
  std::vector<State> ends;
  const std::string least = std::to_string(lowest), most = std::to_string(highest);
  for (std::size_t length = least.size(); length <= most.size(); ++length) {
    const std::string shortest = length == 1 ? "0" : "1" + std::string(length - 1, '0');
    ends.push_back(digits_between(from, length == least.size() ? least : shortest,
                                  length == most.size() ? most : std::string(length, '9')));
  }
  return builder_.joined(ends);
}

JsonRules::State JsonRules::integer(State from, std::optional<std::int64_t> lowest,
                                    std::optional<std::int64_t> highest) {
  // A bound beyond the usual ones moves the other one along.
  std::int64_t least = lowest.value_or(-kMostInteger), most = highest.value_or(kMostInteger);
  if (least > most) (lowest ? most : least) = lowest ? least : most;
  std::vector<State> ends;
  const auto size = [](std::int64_t negative) { return ~static_cast<std::uint64_t>(negative) + 1; };
  if (least < 0) ends.push_back(natural(builder_.text(from, "-"), most < 0 ? size(most) : 1, size(least)));
  if (most >= 0)
    ends.push_back(
        natural(from, static_cast<std::uint64_t>(std::max<std::int64_t>(least, 0)), static_cast<std::uint64_t>(most)));
  return builder_.joined(ends);
}

JsonRules::State JsonRules::other_name(State from, std::span<const std::string> names) {
  struct Prefix {
    std::map<std::uint32_t, std::size_t> next;
    bool is_name = false;
  };
  std::vector<Prefix> prefixes(1);
  for (const std::string& name : names) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < name.size();) {
      const auto [code, length] = code_point_at(std::string_view(name).substr(i));
      const auto [found, is_new] = prefixes[at].next.try_emplace(code, prefixes.size());
      const std::size_t next = found->second;
      if (is_new) prefixes.emplace_back();
      at = next;
      i += length;
    }
    prefixes[at].is_name = true;
  }
  const State end = builder_.state(), free = builder_.state();
  add_code_point(builder_, free, unescaped(), Spelling::plain, free);
  builder_.range(free, '"', '"', end);
  std::vector<State> states{builder_.text(from, "\"")};
  for (std::size_t i = 1; i < prefixes.size(); ++i) states.push_back(builder_.state());
  for (std::size_t i = 0; i < prefixes.size() && !builder_.full(); ++i) {
    std::vector<CodeRange> known;
    for (const auto& [code, next] : prefixes[i].next) {
      known.push_back({code, code});
      if (code < 0x20 || code == '"' || code == '\\') continue;  // such a name would need an escape
      add_code_point(builder_, states[i], CodePoints({{code, code}}), Spelling::plain, states[next]);
    }
    add_code_point(builder_, states[i], unescaped().without(CodePoints(std::move(known))), Spelling::plain, free);
    if (i > 0 && !prefixes[i].is_name) builder_.range(states[i], '"', '"', end);
  }
  return end;
}

}  // namespace systole::grammar

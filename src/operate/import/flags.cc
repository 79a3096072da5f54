#include "operate/import/flags.h"

#include <algorithm>

#include "ground/base/nearest.h"
#include "ground/base/number_from.h"
#include "operate/import/variables.h"

namespace systole {
namespace {

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, {}, [](char c) { return c == '_' ? '-' : c; }, [](char c) { return c == '_' ? '-' : c; });
}

// Dashes that word processors substitute for '-': U+2010 to U+2015, and the minus sign.
constexpr std::string_view kDashes[] = {"\xe2\x80\x90", "\xe2\x80\x91", "\xe2\x80\x92", "\xe2\x80\x93",
                                        "\xe2\x80\x94", "\xe2\x80\x95", "\xe2\x88\x92"};

bool is_dash(std::string_view text) {
  return std::ranges::any_of(kDashes, [&](std::string_view dash) { return text.starts_with(dash); });
}

// An em dash replaces "--".
std::string with_plain_dashes(std::string text) {
  for (const std::string_view dash : kDashes)
    for (std::size_t at = text.find(dash); at != text.npos; at = text.find(dash))
      text.replace(at, dash.size(), dash == "\xe2\x80\x94" ? "--" : "-");
  if (!text.starts_with("--") && text.size() > 2 && text.find('=') != text.npos) text.insert(0, "-");
  return text;
}

class FlagReader {
 public:
  FlagReader(std::span<const ShellWord> words, std::initializer_list<std::span<const Flag>> tables,
             const FlagStyle& style, Draft& draft)
      : words_(words.begin(), words.end()), tables_(tables), style_(style), draft_(draft) {}

  std::vector<ShellWord> read() {
    std::vector<ShellWord> rest;
    while (at_ < words_.size()) {
      if (put_in_variable()) continue;
      const ShellWord word = words_[at_];
      if (is_dash(word.text)) {
        wrong_dash(word);
        ++at_;
        continue;
      }
      if (word.text == "--" || (style_.words_end_them && (word.text.size() < 2 || word.text[0] != '-'))) {
        rest.insert(rest.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_ + (word.text == "--" ? 1 : 0)),
                    words_.end());
        break;
      }
      ++at_;
      if (word.text.size() < 2 || word.text[0] != '-') {
        rest.push_back(word);
      } else if (word.text[1] == '-') {
        long_flag(word);
      } else {
        short_flags(word);
      }
    }
    return rest;
  }

 private:
  // Replaces $ARGS among the flags by its value in the script. An unknown value may hide flags.
  bool put_in_variable() {
    if (const std::optional<std::vector<ShellWord>> said = words_of_variable(words_[at_], draft_);
        said && put_in_++ < kMostPutIn) {
      const auto here = words_.begin() + static_cast<std::ptrdiff_t>(at_);
      words_.insert(words_.erase(here), said->begin(), said->end());
      return true;
    }
    const auto is_program = [](const ShellWord& w) { return w.text.ends_with(".py") || w.text == "-m"; };
    const bool hides = is_variable(words_[at_]) &&
                       std::any_of(words_.begin() + static_cast<std::ptrdiff_t>(at_) + 1, words_.end(), is_program);
    if (!hides) return false;
    draft_.wrong(error(ErrorKind::unsupported, "{}: what it says stands nowhere here", words_[at_].raw)
                     .hinted(fmt::format("write {}'s flags out in its place", style_.program)));
    ++at_;
    return true;
  }

  void wrong_dash(const ShellWord& word) {
    draft_.wrong(error(ErrorKind::invalid, "{}: begins with a dash that is no '-'; {} takes it for no flag",
                       origin(with_plain_dashes(word.text)), style_.program)
                     .hinted("type it again: " + origin(with_plain_dashes(word.text))));
  }

  template <typename Is>
  const Flag* find(const Is& is) const {
    for (const std::span<const Flag> table : tables_)
      for (const Flag& flag : table)
        if (is(flag)) return &flag;
    return nullptr;
  }

  // Flags with this prefix, one per name: srun and sbatch share some.
  std::vector<const Flag*> beginning_with(std::string_view name) const {
    std::vector<const Flag*> all;
    for (const std::span<const Flag> table : tables_)
      for (const Flag& flag : table)
        if (flag.name.starts_with(name) && std::ranges::find(all, flag.name, &Flag::name) == all.end())
          all.push_back(&flag);
    return all;
  }

  void ambiguous(const std::string& name, const std::vector<const Flag*>& all) {
    std::string names;
    for (const Flag* flag : all) names += (names.empty() ? "--" : ", --") + std::string(flag->name);
    draft_.wrong(
        error(ErrorKind::invalid, "{}: begins several options of {}'s", origin(name), style_.program).hinted(names));
  }

  void unknown(const std::string& name) {
    if (!style_.passes.empty()) return draft_.left_out(name, std::string(style_.passes));
    std::vector<std::string> names;
    for (const std::span<const Flag> table : tables_)
      for (const Flag& flag : table) names.push_back("--" + std::string(flag.name));
    const std::vector<std::string> near = nearest(name, names);
    draft_.wrong(error(ErrorKind::invalid, "{}: {} has no such flag that is known here", origin(name), style_.program)
                     .hinted(near.empty() ? "take it out" : nearest_hint(name, names)));
  }

  void long_flag(const ShellWord& word) {
    const std::size_t equals = word.text.find('=');
    const std::string name = word.text.substr(2, equals == word.text.npos ? equals : equals - 2);
    const Flag* flag = find([&](const Flag& f) { return same_name(f.name, name); });
    if (flag == nullptr && style_.shortened && !name.empty()) {
      const std::vector<const Flag*> all = beginning_with(name);
      if (all.size() > 1) return ambiguous("--" + name, all);
      if (all.size() == 1) flag = all.front();
    }
    if (flag == nullptr && negated(name, word)) return;
    if (flag == nullptr) return unknown("--" + name);
    if (equals != word.text.npos) return apply(*flag, word.text, word.text.substr(equals + 1), word.expands);
    take(*flag, "--" + name);
  }

  // --no-X; in `seen` it has that name.
  bool negated(std::string_view name, const ShellWord& word) {
    if (!style_.negates || !name.starts_with("no-") || name.size() + 2 != word.text.size()) return false;
    const Flag* flag =
        find([&](const Flag& f) { return f.takes == Flag::Takes::nothing && same_name(f.name, name.substr(3)); });
    if (flag == nullptr) return false;
    const std::string spelt = "no-" + std::string(flag->name);
    Flag no = *flag;
    no.name = spelt;
    no.read = nullptr;
    apply(no, word.text, "", false);
    return true;
  }

  // -N2, -N 2, -km
  void short_flags(const ShellWord& word) {
    for (std::size_t i = 1; i < word.text.size(); ++i) {
      const Flag* flag = find([&](const Flag& f) { return f.letter == word.text[i]; });
      // -cfg, -nodes: some programs accept one dash for long names, too.
      if (const Flag* whole =
              i == 1 ? find([&](const Flag& f) { return same_name(f.name, word.text.substr(1)); }) : nullptr;
          whole != nullptr && word.text.size() > 2) {
        return take(*whole, word.text);
      }
      if (flag == nullptr) return unknown(word.text);
      const std::string spelt = std::string("-") + word.text[i];
      if (flag->takes == Flag::Takes::nothing) {
        apply(*flag, spelt, "", false);
      } else if (i + 1 < word.text.size()) {
        const std::size_t from = i + 1 + (word.text[i + 1] == '=' ? 1 : 0);
        return apply(*flag, word.text, word.text.substr(from), word.expands);
      } else {
        return take(*flag, spelt);
      }
    }
  }

  void take(const Flag& flag, const std::string& spelt) {
    if (flag.takes != Flag::Takes::value) return apply(flag, spelt, "", false);
    if (at_ >= words_.size()) {
      draft_.wrong(error(ErrorKind::invalid, "{} has no value", spelt).hinted("paste the whole line"));
      return;
    }
    const ShellWord& value = words_[at_++];
    apply(flag, spelt + " " + value.raw, value.text, value.expands);
  }

  void apply(const Flag& flag, const std::string& from, const std::string& value, bool expands) {
    if (expands)
      if (const ShellWord put = with_variables({value, value, true}, draft_); !put.expands)
        return apply(flag, from, put.text, false);
    if (style_.seen != nullptr)
      style_.seen->push_back({std::string(flag.name), {value, origin(from)}, expands, flag.why});
    if (flag.refused) {
      draft_.wrong(error(ErrorKind::unsupported, "{}: {}", origin(from), flag.why).hinted("take it out"));
    } else if (flag.read == nullptr) {
      if (!flag.why.empty() && style_.tells) draft_.left_out(from, std::string(flag.why));
    } else if (expands) {
      draft_.left_out(from, "its value is known only where it runs");
    } else {
      flag.read(draft_, {value, origin(from)});
    }
  }

  std::vector<ShellWord> words_;
  std::vector<std::span<const Flag>> tables_;
  const FlagStyle& style_;
  Draft& draft_;
  static constexpr int kMostPutIn = 64;  // a variable may refer to itself
  std::size_t at_ = 0;
  int put_in_ = 0;
};

constexpr std::int64_t kMost = 1'000'000'000;

void no_number(Draft& draft, const FlagValue& value, std::string_view what) {
  draft.wrong(error(ErrorKind::invalid, "{}: '{}' is no {}", value.from, origin(value.text), what)
                  .hinted("a number that the workload can say"));
}

}  // namespace

std::vector<ShellWord> read_flags(std::span<const ShellWord> words, std::initializer_list<std::span<const Flag>> tables,
                                  const FlagStyle& style, Draft& draft) {
  return FlagReader(words, tables, style, draft).read();
}

std::optional<std::int64_t> count_of(Draft& draft, const FlagValue& value, std::int64_t least, std::int64_t most) {
  const std::optional<std::int64_t> count = number_from(value.text);
  if (count && *count >= least && *count <= most) return count;
  no_number(draft, value, "count");
  return std::nullopt;
}

std::optional<CountRange> range_of(Draft& draft, const FlagValue& value, char between) {
  const std::size_t at = value.text.find(between);
  const std::optional<std::int64_t> least = number_from(std::string_view(value.text).substr(0, at));
  const std::optional<std::int64_t> most =
      at == value.text.npos ? least : number_from(std::string_view(value.text).substr(at + 1));
  if (least && most && *least >= 1 && *most >= *least && *most <= kMost) return CountRange{*least, *most};
  no_number(draft, value, "count or range");
  return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> pairs_of(std::string_view text, char between) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!text.empty()) {
    const std::size_t end = text.find(between);
    const std::string_view part = text.substr(0, end);
    const std::size_t equals = part.find('=');
    if (!part.empty()) pairs.emplace_back(part.substr(0, equals), equals == part.npos ? "" : part.substr(equals + 1));
    text = end == text.npos ? "" : text.substr(end + 1);
  }
  return pairs;
}

}  // namespace systole

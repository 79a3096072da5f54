#pragma once
// Grammars that answers conform to, and how far a text has come in one.
//
//   Grammar grammar = TRY(Grammar::of_schema(schema));
//   GrammarState state(grammar);
//   if (state.advance("{\"a\":")) ...       // false: no text that conforms goes on so
//   if (state.may_end()) ...                // the text is whole
//   if (state.must_end()) ...               // and nothing can follow
//
// A state is the set of configurations that the text may have led to: a state of the automaton (automaton.h), and those
// where the rules that called it go on. Both are bounded: kMostDepth calls, kMostConfigurations at once. Readings of a
// text beyond that are given up; what is read still conforms.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "execute/serve/grammar/automaton.h"
#include "ground/base/document.h"

namespace systole::grammar {

constexpr std::int32_t kMostDepth = 64;
constexpr std::size_t kMostConfigurations = 64;

// Immutable, cheap to copy, thread-safe.
class Grammar {
 public:
  // Texts that match as a whole (regex.h). Errors: those of Regex::parse; does_not_fit; invalid (nothing matches).
  static Result<Grammar> of_regex(std::string_view pattern);
  // JSON that is valid under the schema. Errors: those of JsonSchema.
  static Result<Grammar> of_schema(const Node& schema);
  static Grammar of_object();  // any JSON object

  // A sequence of fixed texts and of values under schemas, for formats around them.
  struct Piece {
    std::string text = {};
    const Node* schema = nullptr;  // instead of the text
  };
  // One of `choices`, or if `repeats` any number of them, but at least one, with `between` between two of them; then
  // `before` and `after` around all. Errors: those of JsonSchema; `invalid` without a choice.
  struct Calls {
    std::string before = {}, between = {}, after = {};
    std::vector<std::vector<Piece>> choices;
    bool repeats = false;
  };
  static Result<Grammar> of_calls(const Calls& calls);

  const Automaton& automaton() const { return *automaton_; }

 private:
  explicit Grammar(Automaton automaton) : automaton_(std::make_shared<const Automaton>(std::move(automaton))) {}
  std::shared_ptr<const Automaton> automaton_;
};

// Reads bytes for sets of configurations, which lie one behind the other in `all`. One thread.
class ByteReader {
 public:
  struct Configuration {
    std::int32_t state = 0;
    std::int32_t stack = 0;  // 0: empty
    bool operator==(const Configuration&) const = default;
  };
  explicit ByteReader(const Automaton& automaton) : automaton_(automaton) { clear(); }

  // Forgets all stacks and configurations.
  void clear();
  // The stack with a state on top; -1: it is too deep.
  std::int32_t pushed(std::int32_t stack, std::int32_t state);
  std::int32_t top(std::int32_t stack) const { return stacks_[static_cast<std::size_t>(stack)].top; }
  std::int32_t below(std::int32_t stack) const { return stacks_[static_cast<std::size_t>(stack)].below; }
  std::int32_t depth(std::int32_t stack) const { return stacks_[static_cast<std::size_t>(stack)].depth; }

  // Appends the set of a configuration and those that its calls and ends lead to; of these the ones that can read a
  // byte. `ended`: the empty stack's rule may end here.
  void enter(std::int32_t state, std::int32_t stack);
  // Appends the set behind a byte of the set all[begin, end). Sets `ended` as well.
  void step(std::size_t begin, std::size_t end, std::uint8_t byte);

  std::vector<Configuration> all;
  bool ended = false;
  std::int64_t work = 0;     // configurations looked at, ever
  std::int32_t deepest = 0;  // stack that was pushed since clear()

 private:
  struct Stack {
    std::int32_t top = -1, below = -1, depth = 0;
    std::int32_t child = -1, sibling = -1;  // those pushed on it
  };
  void add(std::size_t begin, std::int32_t state, std::int32_t stack);

  const Automaton& automaton_;
  std::vector<Stack> stacks_;
  std::vector<Configuration> open_, seen_;  // of add()
};

// A value; as large as its stacks.
class GrammarState {
 public:
  explicit GrammarState(Grammar grammar);

  // Reads the bytes. False: no text that conforms goes on so; then the state is as before.
  bool advance(std::string_view bytes);
  bool may_end() const { return may_end_; }
  bool must_end() const { return may_end_ && configurations_.empty(); }

  struct Configuration {
    std::int32_t state = 0;
    std::vector<std::int32_t> stack;  // top last
  };
  // Those that can read a byte.
  const std::vector<Configuration>& configurations() const { return configurations_; }

 private:
  void take(const ByteReader& reader, std::size_t begin);

  Grammar grammar_;
  std::vector<Configuration> configurations_;
  bool may_end_ = false;
};

}  // namespace systole::grammar

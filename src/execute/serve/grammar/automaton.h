#pragma once
// A pushdown automaton over bytes: rules, each a DFA whose edges are ranges of bytes, and whose states may also call a
// rule, to go on in another state once the rule's text is read. Rules may call each other in circles, so that what
// nests has no bound. (A recursive transition network: Woods, 1970, https://doi.org/10.1145/355598.362773.)
//
// Invariants: every state can come to its rule's end; no rule that is called reads the empty text, and none calls
// itself before it has read a byte. So what follows one byte is found in bounded time.
//
//   AutomatonBuilder builder;
//   const auto rule = builder.declare();
//   builder.finish(rule, builder.text(builder.begin_of(rule), "true"));
//   Automaton automaton = TRY(builder.build(rule));

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole::grammar {

struct Automaton {
  struct Edge {
    std::uint8_t first = 0, last = 0;  // bytes, both included
    std::int32_t to = 0;
  };
  struct Call {
    std::int32_t begin = 0;  // of the called rule
    std::int32_t to = 0;     // where its end goes on; kTail: at the end of this rule
  };
  struct State {
    std::uint32_t edges = 0, calls = 0;  // the first; those of the next state follow
    bool ends = false;                   // the rule may end here
    bool plain = false;                  // it neither ends nor calls
  };
  static constexpr std::int32_t kTail = -1;

  std::span<const Edge> edges_of(std::int32_t state) const { return part(edges, state, &State::edges); }
  std::span<const Call> calls_of(std::int32_t state) const { return part(calls, state, &State::calls); }

  std::vector<State> states;  // and one more, where the last one's edges and calls end
  std::vector<Edge> edges;    // of a state: ascending, disjoint
  std::vector<Call> calls;
  std::int32_t begin = 0;  // of the whole

 private:
  template <typename T>
  std::span<const T> part(const std::vector<T>& all, std::int32_t state, std::uint32_t State::*first) const {
    const auto at = static_cast<std::size_t>(state);
    return std::span(all).subspan(states[at].*first, states[at + 1].*first - states[at].*first);
  }
};

// Builds the rules as NFAs. Nothing may lead into a state that others lead out of already, unless it was made for that:
// each piece of a grammar is added behind one state and returns the state at its end.
class AutomatonBuilder {
 public:
  using State = std::int32_t;
  using Rule = std::int32_t;
  // What a grammar may need: hostile ones are refused within tens of milliseconds and megabytes.
  static constexpr std::size_t kMostNfaStates = 1 << 17;
  static constexpr std::int32_t kMostStates = 1 << 15;
  static constexpr std::int64_t kMostWork = 1 << 24;  // states and edges looked at

  Rule declare();
  State begin_of(Rule rule) const { return rules_[static_cast<std::size_t>(rule)].begin; }
  void finish(Rule rule, State end);  // once

  State state();
  void range(State from, std::uint8_t first, std::uint8_t last, State to);
  void call(State from, Rule rule, State to);
  void skip(State from, State to);
  State text(State from, std::string_view bytes);
  State call(State from, Rule rule);
  State joined(std::span<const State> ends);  // a new state behind all of these
  // The grammar is too large: it cannot be built, and what adds to it should stop.
  bool full() const { return full_; }
  void give_up() { full_ = true; }

  // REQUIRES: each rule is finished. Errors: does_not_fit (too large); invalid (no text conforms to it, or a rule that
  // is called reads nothing or calls itself at its beginning).
  Result<Automaton> build(Rule root) const;

 private:
  friend class Determinizer;
  struct Range {
    std::uint8_t first, last;
    State to;
  };
  struct Called {
    Rule rule;
    State to;
  };
  struct NfaState {
    std::vector<Range> ranges;
    std::vector<Called> calls;
    std::vector<State> skips;
  };
  struct NfaRule {
    State begin, end;
  };
  bool count_edge();
  NfaState& at(State state) { return states_[static_cast<std::size_t>(state)]; }

  std::vector<NfaState> states_;
  std::vector<NfaRule> rules_;
  std::size_t edges_ = 0;
  bool full_ = false;
};

}  // namespace systole::grammar

#include "execute/serve/grammar/automaton.h"

#include <algorithm>
#include <map>

namespace systole::grammar {
namespace {

Error too_large() {
  return error(ErrorKind::does_not_fit, "the grammar is too large")
      .hinted("take smaller bounds of repetition, fewer alternatives or a simpler pattern");
}

}  // namespace

AutomatonBuilder::Rule AutomatonBuilder::declare() {
  const State begin = state();
  rules_.push_back({begin, -1});
  return static_cast<Rule>(rules_.size()) - 1;
}

void AutomatonBuilder::finish(Rule rule, State end) { rules_[static_cast<std::size_t>(rule)].end = end; }

AutomatonBuilder::State AutomatonBuilder::state() {
  if (states_.size() >= kMostNfaStates) full_ = true;
  if (full_) return static_cast<State>(states_.size()) - 1;
  states_.emplace_back();
  return static_cast<State>(states_.size()) - 1;
}

bool AutomatonBuilder::count_edge() {
  if (++edges_ > 8 * kMostNfaStates) full_ = true;
  return !full_;
}

void AutomatonBuilder::range(State from, std::uint8_t first, std::uint8_t last, State to) {
  if (count_edge()) at(from).ranges.push_back({first, last, to});
}

void AutomatonBuilder::call(State from, Rule rule, State to) {
  if (count_edge()) at(from).calls.push_back({rule, to});
}

void AutomatonBuilder::skip(State from, State to) {
  if (count_edge()) at(from).skips.push_back(to);
}

AutomatonBuilder::State AutomatonBuilder::text(State from, std::string_view bytes) {
  for (const char c : bytes) {
    const State to = state();
    range(from, static_cast<std::uint8_t>(c), static_cast<std::uint8_t>(c), to);
    from = to;
  }
  return from;
}

AutomatonBuilder::State AutomatonBuilder::call(State from, Rule rule) {
  const State to = state();
  call(from, rule, to);
  return to;
}

AutomatonBuilder::State AutomatonBuilder::joined(std::span<const State> ends) {
  const State to = state();
  for (const State end : ends) skip(end, to);
  return to;
}

// Subset construction, a rule at a time; then states from which no end is reached are removed.
class Determinizer {
 public:
  explicit Determinizer(const AutomatonBuilder& nfa) : nfa_(nfa), mark_(nfa.states_.size(), 0) {}

  Result<Automaton> build(AutomatonBuilder::Rule root) {
    if (nfa_.full()) return too_large();
    for (const AutomatonBuilder::NfaRule& rule : nfa_.rules_) {
      if (!determinize(rule)) return too_large();
    }
    find_living();
    if (!living_[static_cast<std::size_t>(begins_[static_cast<std::size_t>(root)])])
      return error(ErrorKind::invalid, "no text conforms to it: it never ends");
    TRY(check_begins());
    return pruned(root);
  }

 private:
  using Set = std::vector<std::int32_t>;  // ascending
  struct Built {
    std::vector<Automaton::Edge> edges;
    std::vector<AutomatonBuilder::Called> calls;  // of rules; `to` is one of built_
    bool ends = false;
  };
  Built& at(std::int32_t state) { return built_[static_cast<std::size_t>(state)]; }
  std::int32_t begin_of(AutomatonBuilder::Rule rule) const { return begins_[static_cast<std::size_t>(rule)]; }
  bool lives(std::int32_t state) const { return living_[static_cast<std::size_t>(state)] != 0; }

  // `from` and all states behind skips, of which only those matter that have more than skips.
  Set closure(std::span<const std::int32_t> from, std::int32_t end) {
    ++stamp_;
    Set set, open;
    const auto visit = [&](std::int32_t state) {
      std::int64_t& mark = mark_[static_cast<std::size_t>(state)];
      if (std::exchange(mark, stamp_) != stamp_) open.push_back(state);
    };
    for (const std::int32_t state : from) visit(state);
    while (!open.empty()) {
      const std::int32_t state = open.back();
      open.pop_back();
      const auto& nfa = nfa_.states_[static_cast<std::size_t>(state)];
      if (!nfa.ranges.empty() || !nfa.calls.empty() || state == end) set.push_back(state);
      for (const std::int32_t to : nfa.skips) visit(to);
      work_ += 1 + static_cast<std::int64_t>(nfa.skips.size());
    }
    std::ranges::sort(set);
    return set;
  }

  std::int32_t number_of(Set set) {
    const auto [found, is_new] = numbers_.try_emplace(std::move(set), static_cast<std::int32_t>(built_.size()));
    if (is_new) {
      built_.emplace_back();
      sets_.push_back(&found->first);
    }
    return found->second;
  }

  bool determinize(const AutomatonBuilder::NfaRule& rule) {
    numbers_.clear();
    const std::size_t first = built_.size();
    sets_.resize(first);
    const std::int32_t from[] = {rule.begin};
    begins_.push_back(number_of(closure(from, rule.end)));
    for (std::size_t i = first; i < built_.size(); ++i) {
      if (built_.size() > static_cast<std::size_t>(AutomatonBuilder::kMostStates) ||
          work_ > AutomatonBuilder::kMostWork)
        return false;
      const Set& set = *sets_[i];
      built_[i].ends = std::ranges::binary_search(set, rule.end);
      add_calls(static_cast<std::int32_t>(i), set, rule.end);
      add_edges(static_cast<std::int32_t>(i), set, rule.end);
    }
    return true;
  }

  void add_calls(std::int32_t state, const Set& set, std::int32_t end) {
    std::map<AutomatonBuilder::Rule, Set> targets;
    for (const std::int32_t each : set) {
      for (const auto& call : nfa_.states_[static_cast<std::size_t>(each)].calls) targets[call.rule].push_back(call.to);
    }
    for (const auto& [rule, to] : targets) {
      const std::int32_t target = number_of(closure(to, end));
      at(state).calls.push_back({rule, target});
    }
  }

  void add_edges(std::int32_t state, const Set& set, std::int32_t end) {
    std::vector<AutomatonBuilder::Range> ranges;
    std::vector<int> begins;  // of intervals within which all ranges are the same
    for (const std::int32_t each : set) {
      for (const auto& range : nfa_.states_[static_cast<std::size_t>(each)].ranges) {
        ranges.push_back(range);
        begins.push_back(range.first);
        begins.push_back(range.last + 1);
      }
    }
    std::ranges::sort(begins);
    begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
    Set to;
    for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
      to.clear();
      for (const auto& range : ranges) {
        if (range.first <= begins[i] && begins[i] <= range.last) to.push_back(range.to);
      }
      work_ += static_cast<std::int64_t>(ranges.size());
      if (work_ > AutomatonBuilder::kMostWork) return;
      if (to.empty()) continue;
      const std::int32_t target = number_of(closure(to, end));
      std::vector<Automaton::Edge>& edges = at(state).edges;
      const auto last = static_cast<std::uint8_t>(begins[i + 1] - 1);
      if (!edges.empty() && edges.back().to == target && edges.back().last + 1 == begins[i])
        edges.back().last = last;
      else
        edges.push_back({static_cast<std::uint8_t>(begins[i]), last, target});
    }
  }

  // Which states can come to their rule's end: the least fixed point. A state is looked at again only when one that it
  // leads to is found to do so.
  void find_living() {
    living_.assign(built_.size(), 0);
    std::vector<std::vector<std::int32_t>> before(built_.size());
    std::vector<std::int32_t> open;
    const auto look_at = [&](std::int32_t state) {
      if (lives(state) || !can_end(at(state))) return;
      living_[static_cast<std::size_t>(state)] = 1;
      open.push_back(state);
    };
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(built_.size()); ++i) {
      for (const auto& edge : at(i).edges) before[static_cast<std::size_t>(edge.to)].push_back(i);
      for (const auto& call : at(i).calls) {
        before[static_cast<std::size_t>(begin_of(call.rule))].push_back(i);
        before[static_cast<std::size_t>(call.to)].push_back(i);
      }
      look_at(i);
    }
    while (!open.empty()) {
      const std::int32_t state = open.back();
      open.pop_back();
      for (const std::int32_t each : before[static_cast<std::size_t>(state)]) look_at(each);
    }
  }
  bool can_end(const Built& state) const {
    return state.ends || std::ranges::any_of(state.edges, [&](const auto& edge) { return lives(edge.to); }) ||
           std::ranges::any_of(state.calls, [&](const auto& call) { return can_call(call); });
  }
  bool can_call(const AutomatonBuilder::Called& call) const { return lives(begin_of(call.rule)) && lives(call.to); }

  // Whether a rule that is called reads nothing, or is called again before a byte: then reading would not be bounded.
  Status check_begins() {
    for (const Built& state : built_) {
      for (const auto& call : state.calls) {
        if (can_call(call) && at(begin_of(call.rule)).ends)
          return error(ErrorKind::invalid, "a part of it that is referred to may be empty");
      }
    }
    std::map<std::int32_t, int> seen;  // 1: being looked at, 2: without a circle
    for (const std::int32_t begin : begins_) {
      std::vector<std::pair<std::int32_t, std::size_t>> path{{begin, 0}};
      if (seen[begin] == 2) continue;
      while (!path.empty()) {
        auto& [state, next] = path.back();
        const auto& calls = at(state).calls;
        if (next == calls.size()) {
          seen[state] = 2;
          path.pop_back();
          continue;
        }
        seen[state] = 1;
        const auto& call = calls[next++];
        if (!can_call(call)) continue;
        const std::int32_t called = begin_of(call.rule);
        if (seen[called] == 1) return error(ErrorKind::invalid, "a part of it refers to itself before any text");
        if (seen[called] != 2) path.emplace_back(called, 0);
      }
    }
    return {};
  }

  // What can be reached from the root's beginning, and can end.
  Automaton pruned(AutomatonBuilder::Rule root) {
    std::vector<std::int32_t> number(built_.size(), -1), order;
    const auto reach = [&](std::int32_t state) {
      if (!lives(state) || number[static_cast<std::size_t>(state)] >= 0) return;
      number[static_cast<std::size_t>(state)] = static_cast<std::int32_t>(order.size());
      order.push_back(state);
    };
    reach(begin_of(root));
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const auto& edge : at(order[i]).edges) reach(edge.to);
      for (const auto& call : at(order[i]).calls) {
        if (!can_call(call)) continue;
        reach(begin_of(call.rule));
        reach(call.to);
      }
    }
    const auto place = [&](std::int32_t state) { return number[static_cast<std::size_t>(state)]; };
    Automaton result;
    for (const std::int32_t state : order) {
      const Built& built = at(state);
      const auto first_call = static_cast<std::uint32_t>(result.calls.size());
      result.states.push_back({static_cast<std::uint32_t>(result.edges.size()), first_call, built.ends, false});
      for (const auto& edge : built.edges) {
        if (lives(edge.to)) result.edges.push_back({edge.first, edge.last, place(edge.to)});
      }
      for (const auto& call : built.calls) {
        if (!can_call(call)) continue;
        const Built& to = at(call.to);
        const bool is_tail = to.ends && to.edges.empty() && to.calls.empty();
        result.calls.push_back({place(begin_of(call.rule)), is_tail ? Automaton::kTail : place(call.to)});
      }
      result.states.back().plain = !built.ends && result.calls.size() == first_call;
    }
    result.states.push_back({static_cast<std::uint32_t>(result.edges.size()),
                             static_cast<std::uint32_t>(result.calls.size()), false, false});
    result.begin = place(begin_of(root));
    return result;
  }

  const AutomatonBuilder& nfa_;
  std::vector<std::int64_t> mark_;
  std::int64_t stamp_ = 0, work_ = 0;
  std::map<Set, std::int32_t> numbers_;  // of the rule
  std::vector<const Set*> sets_;         // of each of built_; valid for those of the rule
  std::vector<Built> built_;
  std::vector<std::int32_t> begins_;  // of each rule
  std::vector<char> living_;
};

Result<Automaton> AutomatonBuilder::build(Rule root) const { return Determinizer(*this).build(root); }

}  // namespace systole::grammar

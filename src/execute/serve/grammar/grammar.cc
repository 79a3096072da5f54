#include "execute/serve/grammar/grammar.h"

#include <algorithm>

#include "execute/serve/grammar/json_rules.h"
#include "execute/serve/grammar/json_schema.h"
#include "execute/serve/grammar/regex.h"

namespace systole::grammar {

Result<Grammar> Grammar::of_regex(std::string_view pattern) {
  const Regex regex = TRY(Regex::parse(pattern));
  AutomatonBuilder builder;
  const AutomatonBuilder::Rule rule = builder.declare();
  builder.finish(rule, regex.add(builder, builder.begin_of(rule), Spelling::plain, Regex::Match::whole));
  return Grammar(TRY(builder.build(rule)));
}

Result<Grammar> Grammar::of_schema(const Node& schema) {
  AutomatonBuilder builder;
  JsonRules json(builder);
  const AutomatonBuilder::Rule rule = TRY(JsonSchema(schema, builder, json).add());
  return Grammar(TRY(builder.build(rule)));
}

Grammar Grammar::of_object() {
  static const Grammar made = [] {
    AutomatonBuilder builder;
    const AutomatonBuilder::Rule rule = builder.declare();
    builder.finish(rule, JsonRules(builder).object(builder.begin_of(rule)));
    return Grammar(builder.build(rule).value());
  }();
  return made;
}

Result<Grammar> Grammar::of_calls(const Calls& calls) {
  AutomatonBuilder builder;
  JsonRules json(builder);
  const AutomatonBuilder::Rule rule = builder.declare();
  const auto begin = builder.state();
  builder.skip(builder.text(builder.begin_of(rule), calls.before), begin);
  std::vector<AutomatonBuilder::State> ends;
  for (const std::vector<Piece>& choice : calls.choices) {
    AutomatonBuilder::State at = begin;
    for (const Piece& piece : choice) {
      at = piece.schema == nullptr ? builder.text(at, piece.text)
                                   : builder.call(at, TRY(JsonSchema(*piece.schema, builder, json).add()));
    }
    ends.push_back(at);
  }
  const AutomatonBuilder::State end = builder.joined(ends);
  if (calls.repeats) builder.skip(builder.text(end, calls.between), begin);
  builder.finish(rule, builder.text(end, calls.after));
  return Grammar(TRY(builder.build(rule)));
}

void ByteReader::clear() {
  stacks_.assign(1, {});
  all.clear();
  deepest = 0;
}

std::int32_t ByteReader::pushed(std::int32_t stack, std::int32_t state) {
  for (std::int32_t child = stacks_[static_cast<std::size_t>(stack)].child; child >= 0;
       child = stacks_[static_cast<std::size_t>(child)].sibling) {
    ++work;
    if (stacks_[static_cast<std::size_t>(child)].top == state) return child;
  }
  Stack& below = stacks_[static_cast<std::size_t>(stack)];
  if (below.depth >= kMostDepth) return -1;
  const Stack made{state, stack, below.depth + 1, -1, below.child};
  deepest = std::max(deepest, made.depth);
  below.child = static_cast<std::int32_t>(stacks_.size());
  stacks_.push_back(made);
  return static_cast<std::int32_t>(stacks_.size()) - 1;
}

// Adds to the set that begins at `begin`.
void ByteReader::add(std::size_t begin, std::int32_t state, std::int32_t stack) {
  ++work;
  if (all.size() == begin && automaton_.states[static_cast<std::size_t>(state)].plain)
    return all.push_back({state, stack});
  open_.assign(1, {state, stack});
  while (!open_.empty()) {
    const Configuration next = open_.back();
    open_.pop_back();
    work += 1 + static_cast<std::int64_t>(seen_.size() / 8);
    if (seen_.size() >= 8 * kMostConfigurations || std::ranges::find(seen_, next) != seen_.end()) continue;
    seen_.push_back(next);
    if (next.state == Automaton::kTail || automaton_.states[static_cast<std::size_t>(next.state)].ends) {
      if (next.stack == 0)
        ended = true;
      else
        open_.push_back({top(next.stack), below(next.stack)});
    }
    if (next.state == Automaton::kTail) continue;
    for (const Automaton::Call& call : automaton_.calls_of(next.state)) {
      const std::int32_t behind = call.to == Automaton::kTail ? next.stack : pushed(next.stack, call.to);
      if (behind >= 0) open_.push_back({call.begin, behind});
    }
    const bool is_there = std::find(all.begin() + static_cast<std::ptrdiff_t>(begin), all.end(), next) != all.end();
    if (!automaton_.edges_of(next.state).empty() && !is_there && all.size() - begin < kMostConfigurations)
      all.push_back(next);
  }
}

void ByteReader::enter(std::int32_t state, std::int32_t stack) {
  seen_.clear();
  ended = false;
  add(all.size(), state, stack);
}

void ByteReader::step(std::size_t begin, std::size_t end, std::uint8_t byte) {
  seen_.clear();
  ended = false;
  const std::size_t to = all.size();
  for (std::size_t i = begin; i < end; ++i) {
    const Configuration from = all[i];
    ++work;
    for (const Automaton::Edge& edge : automaton_.edges_of(from.state)) {
      if (byte < edge.first) break;
      if (byte <= edge.last) add(to, edge.to, from.stack);
    }
  }
}

GrammarState::GrammarState(Grammar grammar) : grammar_(std::move(grammar)) {
  ByteReader reader(grammar_.automaton());
  reader.enter(grammar_.automaton().begin, 0);
  take(reader, 0);
}

void GrammarState::take(const ByteReader& reader, std::size_t begin) {
  may_end_ = reader.ended;
  configurations_.clear();
  for (std::size_t i = begin; i < reader.all.size(); ++i) {
    Configuration& made = configurations_.emplace_back();
    made.state = reader.all[i].state;
    for (std::int32_t stack = reader.all[i].stack; stack != 0; stack = reader.below(stack))
      made.stack.push_back(reader.top(stack));
    std::ranges::reverse(made.stack);
  }
}

bool GrammarState::advance(std::string_view bytes) {
  if (bytes.empty()) return true;
  ByteReader reader(grammar_.automaton());
  for (const Configuration& each : configurations_) {
    std::int32_t stack = 0;
    for (const std::int32_t state : each.stack) stack = reader.pushed(stack, state);
    reader.all.push_back({each.state, stack});
  }
  std::size_t begin = 0, end = reader.all.size();
  for (const char byte : bytes) {
    reader.step(begin, end, static_cast<std::uint8_t>(byte));
    begin = std::exchange(end, reader.all.size());
    if (begin == end && !reader.ended) return false;
  }
  take(reader, begin);
  return true;
}

}  // namespace systole::grammar

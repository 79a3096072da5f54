#include "execute/serve/chat/chat_template.h"

#include <algorithm>

#include "execute/serve/chat/template_evaluator.h"
#include "execute/serve/chat/template_functions.h"
#include "ground/base/error.h"

namespace systole::chat {
namespace {

enum class Flow { on, stop_loop, next_turn };

class Renderer : public Evaluator {
 public:
  explicit Renderer(Map variables) {
    scopes_.push_back(global_functions());
    for (auto& [name, value] : variables) scopes_[0].insert_or_assign(name, std::move(value));
    scopes_.emplace_back();
  }

  std::string run(const Block& block) {
    std::string out;
    print(block, out);
    return out;
  }

 private:
  static bool holds_namespace(const Value& value) {
    if (value.is_namespace()) return true;
    if (const List* list = value.list()) return std::ranges::any_of(*list, holds_namespace);
    if (value.map() == nullptr) return false;
    return std::ranges::any_of(*value.map(), [](const auto& entry) { return holds_namespace(entry.second); });
  }

  Flow print(const Block& block, std::string& out) {
    for (const Statement& statement : block) {
      const Flow flow = print(statement, out);
      if (flow != Flow::on) return flow;
    }
    return Flow::on;
  }

  Flow print(const Statement& s, std::string& out) {
    const Deeper level(*this, s.line);
    switch (s.kind) {
      case Statement::Kind::text: append(out, s.text); return Flow::on;
      case Statement::Kind::output: append(out, made(value_of(s.expressions[0])).shown()); return Flow::on;
      case Statement::Kind::branch: {
        std::size_t i = 0;
        while (i < s.expressions.size() && !value_of(s.expressions[i]).truth()) ++i;
        return i < s.blocks.size() ? print(s.blocks[i], out) : Flow::on;
      }
      case Statement::Kind::loop: return loop(s, out);
      case Statement::Kind::set: assign(s); return Flow::on;
      case Statement::Kind::set_block: {
        Value text = captured(s.blocks[0]);
        if (!s.expressions.empty()) text = filtered(s.expressions[0], text);
        scopes_.back().insert_or_assign(s.names[0], std::move(text));
        return Flow::on;
      }
      case Statement::Kind::filter:
        append(out, filtered(s.expressions[0], captured(s.blocks[0])).shown());
        return Flow::on;
      case Statement::Kind::macro: define(s); return Flow::on;
      case Statement::Kind::stop_loop: return Flow::stop_loop;
      case Statement::Kind::next_turn: return Flow::next_turn;
    }
    return Flow::on;
  }

  std::string captured(const Block& block) {
    std::string text;
    scopes_.emplace_back();
    print(block, text);
    scopes_.pop_back();
    return text;
  }
  Value filtered(const ExprPtr& filters, const Value& text) {
    scopes_.emplace_back(Map{{" block", text}});
    Value result = value_of(filters);
    scopes_.pop_back();
    return result;
  }

  void unpack(Scope& scope, const std::vector<std::string>& names, Value value) {
    if (names.size() == 1) return scope.insert_or_assign(names[0], std::move(value));
    const List* parts = value.list();
    if (parts == nullptr || parts->size() != names.size())
      wrong(fmt::format("{} names for {}", names.size(), value.type_name()));
    for (std::size_t i = 0; i < names.size(); ++i) scope.insert_or_assign(names[i], (*parts)[i]);
  }

  void assign(const Statement& s) {
    Value value = value_of(s.expressions[0]);
    if (!s.of_namespace) return unpack(scopes_.back(), s.names, std::move(value));
    const Value* space = find(s.names[0]);
    if (space == nullptr || !space->is_namespace()) wrong(fmt::format("'{}' is no namespace", s.names[0]));
    if (holds_namespace(charged(value)))  // one in itself would have no end
      fail(error(ErrorKind::unsupported, "a namespace in a namespace is not supported"));
    if (space->map()->size() >= kLargestMap) too_much("a namespace becomes too large");
    Value(*space).set(s.names[1], std::move(value));
  }

  Flow loop(const Statement& s, std::string& out) {
    List items;
    {
      const Value over = value_of(s.expressions[0]);
      if (over.is_none() || over.is_number()) wrong(fmt::format("a loop over {}", over.type_name()));
      items = *apply_filter("list", glanced(over), {}).list();
    }
    if (s.expressions.size() > 1) {
      List kept;
      for (Value& item : items) {
        scopes_.emplace_back();
        unpack(scopes_.back(), s.names, item);
        if (value_of(s.expressions[1]).truth()) kept.push_back(std::move(item));
        scopes_.pop_back();
      }
      items = std::move(kept);
    }
    if (items.empty()) return s.blocks.size() > 1 ? print(s.blocks[1], out) : Flow::on;
    const auto size = static_cast<std::int64_t>(items.size());
    for (std::int64_t i = 0; i < size; ++i) {
      const auto at = static_cast<std::size_t>(i);
      count(8);
      Map turn{{"index", i + 1},
               {"index0", i},
               {"revindex", size - i},
               {"revindex0", size - i - 1},
               {"first", i == 0},
               {"last", i + 1 == size},
               {"length", size},
               {"previtem", i > 0 ? items[at - 1] : Value::undefined("previtem")},
               {"nextitem", i + 1 < size ? items[at + 1] : Value::undefined("nextitem")},
               {"depth", 1},
               {"depth0", 0}};
      turn.emplace_back("cycle", Function([i](const Arguments& arguments) -> Value {
                          if (arguments.positional.empty()) fail(error(ErrorKind::invalid, "cycle of nothing"));
                          return arguments.positional[static_cast<std::size_t>(i) % arguments.positional.size()];
                        }));
      scopes_.emplace_back(Map{{"loop", Value(std::move(turn))}});
      unpack(scopes_.back(), s.names, items[at]);
      const Flow flow = print(s.blocks[0], out);
      scopes_.pop_back();
      if (flow == Flow::stop_loop) break;
    }
    return Flow::on;
  }

  void define(const Statement& s) {
    scopes_.back().insert_or_assign(s.names[0], Function([this, &s](const Arguments& arguments) -> Value {
                                      const Deeper level(*this, s.line);
                                      if (arguments.positional.size() >= s.names.size())
                                        wrong(fmt::format("too many arguments of '{}'", s.names[0]));
                                      for (const auto& [name, value] : arguments.named) {
                                        if (std::find(s.names.begin() + 1, s.names.end(), name) == s.names.end())
                                          wrong(fmt::format("'{}' has no argument '{}'", s.names[0], name));
                                      }
                                      Map given;
                                      for (std::size_t i = 1; i < s.names.size(); ++i) {
                                        const Value* value = arguments.find(i - 1, s.names[i]);
                                        const ExprPtr& otherwise = s.expressions[i - 1];
                                        given.emplace_back(s.names[i], value != nullptr ? *value
                                                                       : otherwise != nullptr
                                                                           ? value_of(otherwise)
                                                                           : Value::undefined(s.names[i]));
                                      }
                                      // A macro sees what the template has, not what its caller has.
                                      std::vector<Scope> hidden(std::make_move_iterator(scopes_.begin() + 2),
                                                                std::make_move_iterator(scopes_.end()));
                                      scopes_.resize(2);
                                      scopes_.emplace_back(std::move(given));
                                      std::string text;
                                      print(s.blocks[0], text);
                                      scopes_.resize(2);
                                      for (Scope& scope : hidden) scopes_.push_back(std::move(scope));
                                      return text;
                                    }));
  }
};

}  // namespace

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  ChatTemplate result;
  result.block_ = std::make_shared<const Block>(TRY(parse_template(source)));
  result.source_ = std::make_shared<const std::string>(source);
  return result;
}

Result<std::string> ChatTemplate::render(Map variables) const {
  Renderer renderer(std::move(variables));
  try {
    return renderer.run(*block_);
  } catch (const Failure& failure) {
    Error error = failure.error();
    error.message = fmt::format("chat template, line {}: {}", renderer.line(), error.message);
    return error;
  }
}

}  // namespace systole::chat

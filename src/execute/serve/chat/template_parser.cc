#include "execute/serve/chat/template_parser.h"

#include <algorithm>
#include <optional>

#include "execute/serve/chat/template_expression.h"
#include "ground/base/units.h"
#include "ground/base/utf8.h"

namespace systole::chat {
namespace {

constexpr std::size_t kLongest = std::size_t{1} << 20;  // bytes of a template

class Parser : private ExpressionParser {
 public:
  explicit Parser(std::vector<Token> tokens) : ExpressionParser(std::move(tokens)) {}

  Block run() {
    Block block = statements({});
    if (here().kind != Token::Kind::end) fail_at(here().line, fmt::format("'{}' ends nothing", tokens_[at_ + 1].text));
    return block;
  }

 private:
  // Up to a block tag whose word is one of `ends`; that tag is not taken.
  Block statements(std::initializer_list<std::string_view> ends) {
    const Level level(*this);
    Block block;
    while (here().kind != Kind::end) {
      if (here().kind == Kind::text) {
        Token token = take();
        block.push_back({.kind = Statement::Kind::text, .line = token.line, .text = std::move(token.text)});
      } else if (here().kind == Kind::begin_output) {
        Statement output{.kind = Statement::Kind::output, .line = take().line};
        output.expressions.push_back(expression());
        if (take().kind != Kind::end_output) fail_at(output.line, "'}}' is expected");
        block.push_back(std::move(output));
      } else {
        const std::string word = after().kind == Kind::name ? after().text : "";
        if (std::ranges::find(ends, word) != ends.end()) return block;
        if (word.starts_with("end") || word == "else" || word == "elif") return block;  // run() or the caller refuses
        at_ += 2;
        statement(word, block);
      }
    }
    return block;
  }
  // A block that a loop around it cannot leave.
  Block captured(std::initializer_list<std::string_view> ends) {
    const int loops = std::exchange(loops_, 0);
    Block block = statements(ends);
    loops_ = loops;
    return block;
  }
  void end_of(std::string_view word, int line) {
    if (here().kind != Kind::begin_block || after().text != word)
      fail_at(line, fmt::format("'{}' does not end", word.substr(3)));
    at_ += 2;
    end_block();
  }

  void statement(const std::string& word, Block& block) {
    const int line = here().line;
    if (word == "if") return block.push_back(branch(line));
    if (word == "for") return block.push_back(loop(line));
    if (word == "set") return block.push_back(set(line));
    if (word == "macro") return block.push_back(macro(line));
    if (word == "filter") return block.push_back(filter_block(line));
    if (word == "break" || word == "continue") {
      if (loops_ == 0) fail_at(line, fmt::format("'{}' outside of a loop", word));
      block.push_back(
          {.kind = word == "break" ? Statement::Kind::stop_loop : Statement::Kind::next_turn, .line = line});
      return end_block();
    }
    if (word == "generation") {  // marks an assistant's text for training; prints what it holds
      end_block();
      Statement result{.kind = Statement::Kind::filter, .line = line};
      result.expressions.push_back(text_of_block(line));
      result.blocks.push_back(captured({"endgeneration"}));
      block.push_back(std::move(result));
      return end_of("endgeneration", line);
    }
    fail_at(line, fmt::format("'{}' is no tag that chat templates may have here", word), ErrorKind::unsupported);
  }

  Statement branch(int line) {
    Statement result{.kind = Statement::Kind::branch, .line = line};
    result.expressions.push_back(expression());
    end_block();
    result.blocks.push_back(statements({"elif", "else", "endif"}));
    while (here().kind == Kind::begin_block && after().text == "elif") {
      at_ += 2;
      result.expressions.push_back(expression());
      end_block();
      result.blocks.push_back(statements({"elif", "else", "endif"}));
    }
    if (here().kind == Kind::begin_block && after().text == "else") {
      at_ += 2;
      end_block();
      result.blocks.push_back(statements({"endif"}));
    }
    end_of("endif", line);
    return result;
  }

  Statement loop(int line) {
    Statement result{.kind = Statement::Kind::loop, .line = line};
    const bool parentheses = accept("(");
    do result.names.push_back(name());
    while (accept(","));
    if (parentheses) expect(")");
    expect_word("in");
    result.expressions.push_back(disjunction());  // no conditional: `if` filters
    if (accept_word("if")) result.expressions.push_back(expression());
    if (is_word("recursive")) fail_at(line, "recursive loops are not supported", ErrorKind::unsupported);
    end_block();
    ++loops_;
    result.blocks.push_back(statements({"else", "endfor"}));
    --loops_;
    if (here().kind == Kind::begin_block && after().text == "else") {
      at_ += 2;
      end_block();
      result.blocks.push_back(statements({"endfor"}));
    }
    end_of("endfor", line);
    return result;
  }

  Statement set(int line) {
    Statement result{.kind = Statement::Kind::set, .line = line};
    result.names.push_back(name());
    if (accept(".")) {
      result.names.push_back(name());
      result.of_namespace = true;
    }
    while (accept(",")) result.names.push_back(name());
    if (accept("=")) {
      result.expressions.push_back(tuple());
      end_block();
      return result;
    }
    result.kind = Statement::Kind::set_block;
    if (is_sign("|")) result.expressions.push_back(filters(text_of_block(line)));
    end_block();
    result.blocks.push_back(captured({"endset"}));
    end_of("endset", line);
    return result;
  }

  Statement macro(int line) {
    Statement result{.kind = Statement::Kind::macro, .line = line};
    result.names.push_back(name());
    expect("(");
    while (!is_sign(")")) {
      result.names.push_back(name());
      result.expressions.push_back(accept("=") ? expression() : nullptr);
      if (!accept(",")) break;
    }
    expect(")");
    end_block();
    result.blocks.push_back(captured({"endmacro"}));
    end_of("endmacro", line);
    return result;
  }

  Statement filter_block(int line) {
    Statement result{.kind = Statement::Kind::filter, .line = line};
    ExprPtr filter = make(Expr::Kind::filter, line);
    filter->parts.push_back(text_of_block(line));
    filter->name = name();
    if (accept("(")) arguments(*filter);
    result.expressions.push_back(filters(grown(std::move(filter))));
    end_block();
    result.blocks.push_back(captured({"endfilter"}));
    end_of("endfilter", line);
    return result;
  }

  // Stands for what a block prints; the evaluator binds the name.
  static ExprPtr text_of_block(int line) {
    ExprPtr text = make(Expr::Kind::name, line);
    text->name = " block";
    return text;
  }

  int loops_ = 0;
};

}  // namespace

Result<Block> parse_template(std::string_view source) {
  if (source.size() > kLongest)
    return error(ErrorKind::invalid, "a chat template of {}, at most {} are read",
                 to_string(Bytes(static_cast<std::int64_t>(source.size()))),
                 to_string(Bytes(static_cast<std::int64_t>(kLongest))));
  if (const std::optional<std::size_t> invalid = find_invalid_utf8(source))
    return error(ErrorKind::invalid, "the chat template is not UTF-8 at byte {}", *invalid);
  std::string text;  // with "\n" as the only end of a line, as Jinja reads it
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    text += source[i] == '\r' ? '\n' : source[i];
  }
  try {
    return Parser(tokens_of(text)).run();
  } catch (const Failure& failure) { return failure.error(); }
}

}  // namespace systole::chat

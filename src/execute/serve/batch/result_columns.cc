#include "execute/serve/batch/result_columns.h"

#include <cstring>

#include "ground/base/base64.h"

namespace systole {
namespace {

using Type = ResultColumn::Type;

// Null where a part of the path is missing.
Node at(const Node& node, std::initializer_list<std::string_view> path) {
  const Node* found = &node;
  for (const std::string_view key : path) {
    found = found->find(key);
    if (found == nullptr) return {};
  }
  return *found;
}

Node as_text(const Node& node) { return node.is_null() ? Node() : Node(to_json(node)); }

// Of numbers, or of the base64 of floats.
Result<Node> vector_of(const Node& value) {
  if (value.kind() != NodeKind::string) return value;
  const std::string bytes = TRY(from_base64(value.text()));
  if (bytes.size() % sizeof(float) != 0)
    return error(ErrorKind::invalid, "a vector of {} bytes, which are no 32-bit floats", bytes.size());
  std::vector<Node> numbers;
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(float)) {
    float number = 0;
    std::memcpy(&number, bytes.data() + i, sizeof number);
    numbers.emplace_back(NodeKind::number, fmt::format("{}", number));  // the digits of a float, as in an answer
  }
  return Node::sequence(std::move(numbers));
}

// The answers of a row, each with the columns of its kind; at least one.
Result<std::vector<ResultRow>> answers_of(BatchKind kind, const Node& body) {
  std::vector<ResultRow> rows;
  const auto tokens = [&](const char* which) { return rows.empty() ? at(body, {"usage", which}) : Node(); };
  const Node choices = at(body, {"choices"}), data = at(body, {"data"});
  switch (kind) {
    case BatchKind::completions:
      for (const Node& choice : choices.items())
        rows.push_back({at(choice, {"text"}), at(choice, {"finish_reason"}), tokens("prompt_tokens"),
                        tokens("completion_tokens")});
      return rows;
    case BatchKind::chat:
      for (const Node& choice : choices.items())
        rows.push_back({at(choice, {"message", "content"}), at(choice, {"finish_reason"}), tokens("prompt_tokens"),
                        tokens("completion_tokens"), as_text(at(choice, {"message", "tool_calls"}))});
      return rows;
    case BatchKind::embeddings:
      for (const Node& item : data.items()) {
        const Node vector = TRY(vector_of(at(item, {"embedding"})));
        rows.push_back({vector, tokens("prompt_tokens")});
      }
      return rows;
    case BatchKind::classify: {
      const Node label = at(body, {"label"});
      const std::string_view name = label.is_scalar() ? std::string_view(label.text()) : std::string_view();
      rows.push_back({label, at(body, {"probabilities", name}), at(body, {"log_probabilities", name}),
                      as_text(at(body, {"probabilities"}))});
      return rows;
    }
    case BatchKind::score:
      rows.push_back(
          {at(body, {"log_probability"}), at(body, {"tokens"}), at(body, {"bytes"}), at(body, {"bits_per_byte"})});
      return rows;
  }
  return rows;
}

std::vector<ResultColumn> answer_columns(BatchKind kind) {
  const ResultColumn prompt{"prompt_tokens", Type::integer};
  switch (kind) {
    case BatchKind::completions: return {{"answer"}, {"finish_reason"}, prompt, {"completion_tokens", Type::integer}};
    case BatchKind::chat:
      return {{"answer"}, {"finish_reason"}, prompt, {"completion_tokens", Type::integer}, {"tool_calls"}};
    case BatchKind::embeddings: return {{"embedding", Type::float32, true}, prompt};
    case BatchKind::classify:
      return {{"label"}, {"probability", Type::real}, {"log_probability", Type::real}, {"probabilities"}};
    case BatchKind::score:
      return {{"log_probability", Type::real},
              {"tokens", Type::integer},
              {"bytes", Type::integer},
              {"bits_per_byte", Type::real}};
  }
  return {};
}

}  // namespace

std::vector<ResultColumn> result_columns(BatchKind kind) {
  std::vector<ResultColumn> columns{{"index", Type::integer, false, false},
                                    {"item", Type::integer, false, false},
                                    {"custom_id"},
                                    {"status", Type::text, false, false}};
  for (ResultColumn& column : answer_columns(kind)) columns.push_back(std::move(column));
  columns.push_back({"error_code"});
  columns.push_back({"error"});
  return columns;
}

Result<std::vector<ResultRow>> result_rows(BatchKind kind, std::string_view line, const std::string& file) {
  const Node node = TRY(parse_json(line, file));
  const Node body = at(node, {"response", "body"});
  std::vector<ResultRow> answers;
  if (!body.is_null()) answers = TRY(answers_of(kind, body));
  const bool is_wrong = body.is_null();
  if (answers.empty() && !is_wrong)
    return error(ErrorKind::invalid, "row {} of '{}' has no answer of kind {}", node.text_at("index"), file,
                 name_of(kind));
  if (is_wrong) answers.emplace_back(answer_columns(kind).size());
  std::vector<ResultRow> rows;
  for (ResultRow& answer : answers) {
    ResultRow& row = rows.emplace_back();
    row = {at(node, {"index"}), Node(rows.size() - 1), at(node, {"custom_id"}), is_wrong ? "error" : "ok"};
    for (Node& value : answer) row.push_back(std::move(value));
    row.push_back(at(node, {"error", "code"}));
    row.push_back(at(node, {"error", "message"}));
  }
  return rows;
}

}  // namespace systole

#include "execute/serve/openai_answers.h"

#include <algorithm>

namespace systole {
namespace {

Node reason_of(std::optional<SequenceEnd> end) {
  if (!end) return {};
  return end == SequenceEnd::stop ? "stop" : "length";
}

// A stream numbers the calls.
Node calls_node(std::span<const ToolCall> calls, bool numbered) {
  std::vector<Node> nodes;
  for (const ToolCall& call : calls) {
    Node node = Node::map();
    if (numbered) node.set("index", nodes.size());
    node.set("id", call.id).set("type", "function");
    node.set("function", Node::map({{"name", call.name}, {"arguments", call.arguments}}));
    nodes.push_back(std::move(node));
  }
  return Node::sequence(std::move(nodes));
}

Node reason_of(std::optional<SequenceEnd> end, std::span<const ToolCall> calls) {
  return end == SequenceEnd::stop && !calls.empty() ? "tool_calls" : reason_of(end);
}

}  // namespace

Node to_node(const Usage& usage) {
  return Node::map({{"prompt_tokens", usage.prompt_tokens},
                    {"completion_tokens", usage.completion_tokens},
                    {"total_tokens", usage.prompt_tokens + usage.completion_tokens}});
}

Node completion_logprobs(std::span<const CompletionToken> tokens) {
  const auto written = [](double logprob) { return Node(std::max(logprob, -9999.0)); };
  std::vector<Node> texts, logprobs, tops, offsets;
  for (const CompletionToken& token : tokens) {
    texts.emplace_back(token.text);
    offsets.emplace_back(token.offset);
    logprobs.push_back(token.logprob ? written(*token.logprob) : Node());
    if (!token.logprob) {
      tops.emplace_back();
      continue;
    }
    Node top = Node::map();
    for (const auto& [text, logprob] : token.likeliest) {
      if (top.find(text) == nullptr) top.set(text, written(logprob));  // of tokens with one text, the likeliest
    }
    if (top.find(token.text) == nullptr) top.set(token.text, written(*token.logprob));
    tops.push_back(std::move(top));
  }
  return Node::map({{"tokens", Node::sequence(std::move(texts))},
                    {"token_logprobs", Node::sequence(std::move(logprobs))},
                    {"top_logprobs", Node::sequence(std::move(tops))},
                    {"text_offset", Node::sequence(std::move(offsets))}});
}

Node chat_logprobs(std::span<const CompletionToken> tokens) {
  const auto entry = [](const std::string& text, double logprob, const std::string& spelled) {
    std::vector<Node> bytes;
    for (const char byte : spelled) bytes.emplace_back(static_cast<std::int64_t>(static_cast<unsigned char>(byte)));
    return Node::map({{"token", text},
                      {"logprob", std::max(logprob, -9999.0)},
                      {"bytes", bytes.empty() ? Node() : Node::sequence(std::move(bytes))}});
  };
  std::vector<Node> content;
  for (const CompletionToken& token : tokens) {
    std::vector<Node> top;
    for (std::size_t i = 0; i < token.likeliest.size(); ++i)
      top.push_back(entry(token.likeliest[i].first, token.likeliest[i].second, token.likeliest_bytes[i]));
    Node node = entry(token.text, token.logprob.value_or(0), token.bytes);
    content.push_back(node.set("top_logprobs", Node::sequence(std::move(top))));
  }
  return Node::map({{"content", Node::sequence(std::move(content))}, {"refusal", Node()}});
}

Node completion_choice(std::int64_t index, std::string text, std::optional<SequenceEnd> end, Node logprobs) {
  return Node::map({{"index", index},
                    {"text", std::move(text)},
                    {"logprobs", std::move(logprobs)},
                    {"finish_reason", reason_of(end)}});
}

Node chat_choice(std::int64_t index, std::string text, std::optional<SequenceEnd> end,
                 std::span<const ToolCall> calls) {
  Node message = Node::map({{"role", "assistant"}});
  message.set("content", text.empty() && !calls.empty() ? Node() : Node(std::move(text)));
  if (!calls.empty()) message.set("tool_calls", calls_node(calls, false));
  return Node::map({{"index", index},
                    {"message", std::move(message)},
                    {"logprobs", Node()},
                    {"finish_reason", reason_of(end, calls)}});
}

Node chat_piece(std::int64_t index, std::optional<std::string> text, std::optional<SequenceEnd> end,
                std::span<const ToolCall> calls) {
  Node delta = Node::map();
  if (!text) delta.set("role", "assistant");
  if (calls.empty() || (text && !text->empty())) delta.set("content", text ? *text : std::string());
  if (!calls.empty()) delta.set("tool_calls", calls_node(calls, true));
  return Node::map(
      {{"index", index}, {"delta", std::move(delta)}, {"logprobs", Node()}, {"finish_reason", reason_of(end, calls)}});
}

Node chat_completion(const CompletionHead& head, std::vector<Node> choices, bool stream) {
  Node node = completion(head, std::move(choices));
  return node.set("object", stream ? "chat.completion.chunk" : "chat.completion");
}

Node completion(const CompletionHead& head, std::vector<Node> choices) {
  return Node::map({{"id", head.id},
                    {"object", "text_completion"},
                    {"created", head.created},
                    {"model", head.model},
                    {"choices", Node::sequence(std::move(choices))}});
}

int http_status(const Error& error) {
  switch (error.kind) {
    case ErrorKind::invalid:
    case ErrorKind::unsupported: return 400;
    case ErrorKind::not_found: return 404;
    case ErrorKind::busy: return 429;
    case ErrorKind::interrupted: return 503;
    default: return 500;
  }
}

Node error_node(const Error& error) {
  const int status = http_status(error);
  const char* type = status == 429   ? "rate_limit_error"
                     : status == 503 ? "service_unavailable_error"
                     : status >= 500 ? "server_error"
                                     : "invalid_request_error";
  std::string message = error.message;
  if (!error.hint.empty()) message += "; " + error.hint;
  return Node::map(
      {{"error", Node::map({{"message", std::move(message)},
                            {"type", type},
                            {"param", error.key.empty() ? Node() : Node(error.key)},
                            {"code", error.code == ErrorCode::none ? Node() : Node(name_of(error.code))}})}});
}

}  // namespace systole

#include "execute/serve/openai_requests.h"

#include <algorithm>
#include <array>
#include <span>

#include "execute/serve/request_fields.h"
#include "ground/base/number_from.h"

namespace systole {
namespace {

// Each answer keeps these and looks at them with each token.
constexpr std::size_t kMostStop = 1024;   // bytes of a stop string
constexpr std::size_t kMostNamed = 1024;  // tokens of stop_token_ids and of logit_bias

Result<std::vector<std::string>> stops_of(Fields& fields) {
  const Node* stop = fields.find("stop");
  std::vector<std::string> stops;
  if (stop == nullptr) return stops;
  const std::span<const Node> items = stop->is_sequence() ? stop->items() : std::span(stop, 1);
  if (items.size() > 4)
    return key_error(ErrorKind::invalid, "stop", "{} stop strings, at most 4 may be given", items.size());
  for (const Node& item : items) {
    stops.push_back(TRY(Fields::named("stop", item.as_string())));
    if (stops.back().size() > kMostStop)
      return key_error(ErrorKind::invalid, "stop", "a stop string of {} bytes, at most {}", stops.back().size(),
                       kMostStop);
  }
  return stops;
}

Status check_named(const char* field, std::size_t tokens) {
  if (tokens <= kMostNamed) return {};
  return key_error(ErrorKind::invalid, field, "{} names {} tokens, at most {} may be given", field, tokens, kMostNamed);
}

Result<std::vector<std::int32_t>> stop_tokens_of(Fields& fields) {
  using Tokens = std::vector<std::int32_t>;
  const Node* stop = fields.find("stop_token_ids");
  if (stop == nullptr) return Tokens();
  if (!stop->is_sequence()) return Fields::named("stop_token_ids", Result<Tokens>(stop->wrong("a list of tokens")));
  TRY(check_named("stop_token_ids", stop->items().size()));
  return Fields::tokens("stop_token_ids", *stop);
}

Result<std::map<std::int32_t, double>> biases_of(Fields& fields) {
  using Biases = std::map<std::int32_t, double>;
  const Node* bias = fields.find("logit_bias");
  if (bias == nullptr) return Biases();
  if (!bias->is_map())
    return Fields::named("logit_bias", Result<Biases>(bias->wrong("a map of tokens' numbers to biases")));
  TRY(check_named("logit_bias", bias->entries().size()));
  Biases biases;
  for (const Node::Entry& entry : bias->entries()) {
    const std::optional<std::int32_t> token = number_from<std::int32_t>(entry.key);
    if (!token || *token < 0 || std::to_string(*token) != entry.key)
      return key_error(ErrorKind::invalid, "logit_bias", "'{}' is not the number of a token", entry.key);
    const double value = TRY(Fields::named("logit_bias", entry.value.as_double()));
    if (value < -100 || value > 100)
      return key_error(ErrorKind::invalid, "logit_bias", "{} is not between -100 and 100", value);
    biases[*token] = value;
  }
  return biases;
}

// What changes the logits before a draw.
Status read_adjustments(Fields& fields, SamplingOptions& sampling) {
  sampling.min_p = TRY(fields.number("min_p", 0, 0, 1));
  sampling.presence_penalty = TRY(fields.number("presence_penalty", 0, -2, 2));
  sampling.frequency_penalty = TRY(fields.number("frequency_penalty", 0, -2, 2));
  sampling.repetition_penalty = TRY(fields.number("repetition_penalty", 1, 0.01, 100));
  sampling.logit_bias = TRY(biases_of(fields));
  return {};
}

// What ends an answer besides text. REQUIRES: max_tokens is read.
Status read_ends(Fields& fields, CompletionRequest& request) {
  request.min_tokens = TRY(fields.integer("min_tokens", 0, 0, INT32_MAX));
  if (request.min_tokens > request.max_tokens) {
    return key_error(ErrorKind::invalid, "min_tokens", "{} is more than max_tokens, {}", request.min_tokens,
                     request.max_tokens);
  }
  request.ignore_eos = TRY(fields.truth("ignore_eos", false));
  request.stop_tokens = TRY(stop_tokens_of(fields));
  return {};
}

Status read_logprobs(Fields& fields, CompletionRequest& request) {
  const Node* asked = fields.find("logprobs");
  if (asked == nullptr || *asked == Node(false)) return {};
  request.logprobs = TRY(fields.integer("logprobs", 0, 0, 5));
  return {};
}

// `logprobs` is a bool in chat, and top_logprobs the number of the likeliest.
Status read_chat_logprobs(Fields& fields, CompletionRequest& request) {
  const std::int64_t top = TRY(fields.integer("top_logprobs", 0, 0, 20));
  const bool asked = TRY(fields.truth("logprobs", false));
  if (top > 0 && !asked)
    return key_error(ErrorKind::invalid, "top_logprobs", "only a request with logprobs: true has them");
  if (asked) request.logprobs = top;
  return {};
}

// What completions and chat have in common; not the most tokens.
Status read_common(Fields& fields, CompletionRequest& request) {
  request.model = TRY(fields.text("model"));
  request.n = TRY(fields.integer("n", 1, 1, kMostChoices));
  request.sampling.temperature = TRY(fields.number("temperature", 1, 0, 2));
  request.sampling.top_p = TRY(fields.number("top_p", 1, 0, 1));
  request.sampling.top_k = TRY(fields.integer("top_k", 0, -1, INT32_MAX));
  request.sampling.top_k = std::max<std::int64_t>(request.sampling.top_k, 0);  // -1, too, is all
  if (fields.find("seed") != nullptr) {
    request.seeded = true;
    request.sampling.seed = static_cast<std::uint64_t>(TRY(fields.integer("seed", 0, INT64_MIN, INT64_MAX)));
  }
  request.stop = TRY(stops_of(fields));
  request.stream = TRY(fields.truth("stream", false));
  if (const Node* options = fields.find("stream_options")) {
    if (!options->is_map()) return Fields::named("stream_options", Result<bool>(options->wrong("a map"))).error();
    if (!request.stream)
      return key_error(ErrorKind::invalid, "stream_options", "only a request with stream: true has them");
    Fields of_stream(*options);
    request.with_usage = TRY(of_stream.truth("include_usage", false));
    request.usage_in_pieces = TRY(of_stream.truth("continuous_usage_stats", false)) && request.with_usage;
    TRY(of_stream.only("include_obfuscation", Node(false)));
    TRY(of_stream.nothing_else());
  }
  TRY(read_adjustments(fields, request.sampling));
  request.form = TRY(read_answer_form(fields));
  // Of whom and for whose books: they change no answer.
  for (const char* name : {"user", "metadata", "safety_identifier", "prompt_cache_key"}) fields.find(name);
  TRY(fields.only("store", Node(false)));
  return fields.only("service_tier", Node("auto"));
}

Error wrong_message(std::string_view what) { return key_error(ErrorKind::invalid, "messages", "{}", what); }

// A text, or the texts of its parts.
Result<Node> content_of(const Node& content) {
  if (content.is_null() || content.kind() == NodeKind::string) return content;
  if (!content.is_sequence()) return wrong_message("a message's content is text or a list of parts");
  std::string text;
  for (const Node& part : content.items()) {
    const Node *type = part.find("type"), *said = part.find("text");
    if (type == nullptr || type->kind() != NodeKind::string) return wrong_message("a part of a message has no type");
    if (type->text() != "text")
      return key_error(ErrorKind::unsupported, "messages", "parts of the type '{}' are not supported", type->text())
          .hinted("only text is");
    if (said == nullptr || said->kind() != NodeKind::string) return wrong_message("a part of a message has no text");
    text += (&part == content.items().data() ? "" : "\n") + said->text();
  }
  return Node(text);
}

// The arguments of a call are JSON in a text; templates expect the map.
Result<Node> calls_of(const Node& calls) {
  if (!calls.is_sequence()) return wrong_message("tool_calls is no list");
  std::vector<Node> result;
  for (Node call : calls.items()) {
    const Node* function = call.find("function");
    if (function == nullptr || function->find("name") == nullptr)
      return wrong_message("a tool call has no function with a name");
    const Node* arguments = function->find("arguments");
    if (arguments != nullptr && arguments->kind() == NodeKind::string) {
      Result<Node> parsed = parse_json(arguments->text(), "arguments", {.depth = 64});
      if (parsed.ok() && parsed->is_map()) {
        Node changed = *function;
        changed.set("arguments", std::move(*parsed));
        call.set("function", std::move(changed));
      }
    }
    result.push_back(std::move(call));
  }
  return Node::sequence(std::move(result));
}

Result<Node> message_of(const Node& message) {
  static constexpr std::array<std::string_view, 5> kRoles{"system", "developer", "user", "assistant", "tool"};
  static constexpr std::array<std::string_view, 4> kTexts{"name", "tool_call_id", "reasoning_content", "refusal"};
  if (!message.is_map()) return wrong_message("a message is no JSON object");
  const Node* role = message.find("role");
  if (role == nullptr || role->kind() != NodeKind::string || std::ranges::find(kRoles, role->text()) == kRoles.end())
    return wrong_message("a message's role is none of system, developer, user, assistant, tool");
  Node result = Node::map({{"role", role->text()}});
  const Node* content = message.find("content");
  if (content == nullptr && message.find("tool_calls") == nullptr) return wrong_message("a message has no content");
  result.set("content", content == nullptr ? Node() : TRY(content_of(*content)));
  for (const Node::Entry& entry : message.entries()) {
    if (entry.key == "role" || entry.key == "content" || entry.value.is_null()) continue;
    if (entry.key == "tool_calls")
      result.set("tool_calls", TRY(calls_of(entry.value)));
    else if (std::ranges::find(kTexts, entry.key) != kTexts.end() && entry.value.kind() == NodeKind::string)
      result.set(entry.key, entry.value);
    else
      return key_error(ErrorKind::invalid, "messages", "a message has an unknown field '{}', or it is no text",
                       entry.key);
  }
  return result;
}

Result<chat::Conversation> conversation_of(Fields& fields) {
  const Node& messages = *TRY(fields.required("messages"));
  if (!messages.is_sequence() || messages.items().empty()) return wrong_message("messages is no list of messages");
  std::vector<Node> all;
  for (const Node& message : messages.items()) all.push_back(TRY(message_of(message)));
  return chat::Conversation{.messages = Node::sequence(std::move(all))};
}

}  // namespace

Result<CompletionRequest> parse_completion(std::string_view body) {
  return read_completion(TRY(parse_json(body, "request", {.depth = 64})));
}

Result<CompletionRequest> read_completion(const Node& node) {
  if (!node.is_map()) return node.wrong("a JSON object");
  Fields fields(node);
  CompletionRequest request;
  TRY(read_common(fields, request));
  request.prompts = TRY(fields.texts_or_tokens("prompt"));
  if (static_cast<std::int64_t>(request.prompts.size()) > kMostChoices / request.n)
    return key_error(ErrorKind::invalid, "n", "{} prompts with {} answers each; at most {} answers in one request",
                     request.prompts.size(), request.n, kMostChoices);
  request.echo = TRY(fields.truth("echo", false));
  request.max_tokens = TRY(fields.integer("max_tokens", 16, request.echo ? 0 : 1, INT32_MAX));
  TRY(read_ends(fields, request));
  TRY(read_logprobs(fields, request));
  TRY(fields.integer("best_of", 1, 1, 1));
  TRY(fields.only("suffix", Node("")));
  TRY(fields.nothing_else());
  TRY(check(request.sampling));
  return request;
}

Result<CompletionRequest> parse_chat(std::string_view body) {
  return read_chat(TRY(parse_json(body, "request", {.depth = 64})));
}

Result<CompletionRequest> read_chat(const Node& node) {
  if (!node.is_map()) return node.wrong("a JSON object");
  Fields fields(node);
  CompletionRequest request;
  TRY(read_common(fields, request));
  request.conversation = TRY(conversation_of(fields));
  request.tools = TRY(read_tool_use(fields));
  if (request.tools.choice != ToolUse::Choice::none) request.conversation->tools = request.tools.tools;
  if (request.tools.is_forced() && request.form.kind != AnswerForm::Kind::text)
    return key_error(ErrorKind::invalid, "tool_choice", "a call is required, and {} asks for another form",
                     request.form.field);
  // Without a limit the answer may fill the context.
  const std::int64_t older = TRY(fields.integer("max_tokens", INT32_MAX, 1, INT32_MAX));
  request.max_tokens = TRY(fields.integer("max_completion_tokens", older, 1, INT32_MAX));
  TRY(read_ends(fields, request));
  TRY(read_chat_logprobs(fields, request));
  TRY(fields.nothing_else());
  TRY(check(request.sampling));
  return request;
}

}  // namespace systole

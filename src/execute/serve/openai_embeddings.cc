#include "execute/serve/openai_embeddings.h"

#include <fmt/ranges.h>

#include <bit>

#include "ground/base/base64.h"

namespace systole {
namespace {

std::string base64_text(const std::vector<float>& vector) {
  static_assert(std::endian::native == std::endian::little);
  return to_base64({reinterpret_cast<const char*>(vector.data()), vector.size() * sizeof(float)});
}

}  // namespace

Result<EmbeddingsRequest> parse_embeddings(std::string_view body) {
  return read_embeddings(TRY(parse_json(body, "request", {.depth = 16})));
}

Result<EmbeddingsRequest> read_embeddings(const Node& node) {
  if (!node.is_map()) return node.wrong("a JSON object");
  Fields fields(node);
  EmbeddingsRequest request;
  request.model = TRY(fields.text("model"));
  request.inputs = TRY(fields.texts_or_tokens("input"));
  if (request.inputs.size() > kMostInputs)
    return key_error(ErrorKind::invalid, "input", "{} inputs, at most {} in one request", request.inputs.size(),
                     kMostInputs);
  if (fields.find("dimensions") != nullptr) request.dimensions = TRY(fields.integer("dimensions", 0, 1, INT32_MAX));
  if (fields.find("encoding_format") != nullptr) {
    const std::string name = TRY(fields.text("encoding_format"));
    if (name != "float" && name != "base64")
      return key_error(ErrorKind::invalid, "encoding_format", "'{}' is neither float nor base64", name);
    request.base64 = name == "base64";
  }
  fields.find("user");  // for whose books: it changes no answer
  TRY(fields.nothing_else());
  return request;
}

std::string vector_text(const std::vector<float>& vector) { return fmt::format("[{}]", fmt::join(vector, ",")); }

std::string embeddings_text(const EmbeddingsRequest& request, const std::vector<std::vector<float>>& vectors,
                            std::int64_t tokens) {
  std::string text = R"({"object":"list","data":[)";
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    text += fmt::format(R"({}{{"object":"embedding","index":{},"embedding":)", i == 0 ? "" : ",", i);
    text += request.base64 ? "\"" + base64_text(vectors[i]) + "\"" : vector_text(vectors[i]);
    text += "}";
  }
  return text + fmt::format(R"(],"model":{},"usage":{{"prompt_tokens":{},"total_tokens":{}}}}})",
                            to_json(Node(request.model)), tokens, tokens);
}

}  // namespace systole

#pragma once
// Requests and answers of OpenAI's HTTP interface for embeddings, as JSON; without a server.
// Source: https://platform.openai.com/docs/api-reference/embeddings (2026-11).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "execute/serve/request_fields.h"

namespace systole {

struct EmbeddingsRequest {
  using Input = TextOrTokens;
  std::string model;
  std::vector<Input> inputs;
  std::optional<std::int64_t> dimensions;  // so many of each vector's numbers
  bool base64 = false;                     // encoding_format: the bytes of little-endian f32
};

constexpr std::size_t kMostInputs = 2048;  // of one request

// Errors: invalid, naming the field: not JSON, a wrong type or value, an unknown field, no input or too many.
Result<EmbeddingsRequest> parse_embeddings(std::string_view body);
Result<EmbeddingsRequest> read_embeddings(const Node& body);

// {"object": "list", "data": [{"object": "embedding", "index", "embedding"}], "model", "usage"}. Vectors are shortened
// already. Written as text: a Node per number would take a hundred bytes.
std::string embeddings_text(const EmbeddingsRequest& request, const std::vector<std::vector<float>>& vectors,
                            std::int64_t tokens);

// A vector as JSON: numbers that read back to the same floats.
std::string vector_text(const std::vector<float>& vector);

}  // namespace systole

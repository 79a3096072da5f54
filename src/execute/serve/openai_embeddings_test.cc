#include "execute/serve/openai_embeddings.h"

#include <gtest/gtest.h>

#include <cstring>

#include "ground/base/base64.h"
#include "ground/base/document.h"

namespace systole {
namespace {

EmbeddingsRequest parsed(const std::string& more) {
  return parse_embeddings(R"({"model": "m", )" + more + "}").value();
}

TEST(OpenAIEmbeddings, inputs_are_texts_or_tokens) {
  using Input = EmbeddingsRequest::Input;
  using Tokens = std::vector<std::int32_t>;
  EXPECT_EQ(parsed(R"("input": "a")").inputs, (std::vector<Input>{"a"}));
  EXPECT_EQ(parsed(R"("input": ["a", ""])").inputs, (std::vector<Input>{"a", ""}));
  EXPECT_EQ(parsed(R"("input": [1, 2])").inputs, (std::vector<Input>{Tokens{1, 2}}));
  EXPECT_EQ(parsed(R"("input": [[1, 2], [3]])").inputs, (std::vector<Input>{Tokens{1, 2}, Tokens{3}}));
  const EmbeddingsRequest usual = parsed(R"("input": "a", "user": "me", "dimensions": null)");
  EXPECT_EQ(usual.model, "m");
  EXPECT_FALSE(usual.base64);
  EXPECT_FALSE(usual.dimensions);
  const EmbeddingsRequest asked = parsed(R"("input": "a", "dimensions": 7, "encoding_format": "base64")");
  EXPECT_TRUE(asked.base64);
  EXPECT_EQ(asked.dimensions, 7);
}

TEST(OpenAIEmbeddings, errors_name_the_field) {
  const auto refused = [](const std::string& body, const std::string& key) {
    const auto request = parse_embeddings(body);
    ASSERT_FALSE(request.ok()) << body;
    EXPECT_EQ(request.error().key, key) << body << request.error().message;
  };
  for (const char* bad : {"", "5", "[]", "{"}) EXPECT_FALSE(parse_embeddings(bad).ok()) << bad;
  refused(R"({"input": "a"})", "model");
  refused(R"({"model": 5, "input": "a"})", "model");
  refused(R"({"model": "m"})", "input");
  for (const char* bad : {"[]", "5", "{}", "[null]", "[1, \"a\"]", "[-1]", "[1.5]", "[[\"a\"]]", "[\"a\", 1]"})
    refused(fmt::format(R"({{"model": "m", "input": {}}})", bad), "input");
  std::string many = "\"a\"";
  for (int i = 0; i < 2048; ++i) many += ",\"a\"";
  refused(fmt::format(R"({{"model": "m", "input": [{}]}})", many), "input");
  for (const char* bad : {"0", "-1", "\"4\"", "1.5"})
    refused(fmt::format(R"({{"model": "m", "input": "a", "dimensions": {}}})", bad), "dimensions");
  refused(R"({"model": "m", "input": "a", "encoding_format": "hex"})", "encoding_format");
  refused(R"({"model": "m", "input": "a", "dimension": 3})", "dimension");
}

TEST(OpenAIEmbeddings, answers_read_back_to_the_same_numbers) {
  EmbeddingsRequest request{.model = "m\"", .inputs = {}, .dimensions = {}};
  const std::vector<std::vector<float>> vectors{{1, -0.1F, 1e-30F}, {3.4e38F, 0, 2}};
  const Node floats = parse_json(embeddings_text(request, vectors, 5), "answer").value();
  EXPECT_EQ(floats.find("object")->text(), "list");
  EXPECT_EQ(floats.find("model")->text(), "m\"");
  EXPECT_EQ(floats.find("usage")->find("prompt_tokens")->text(), "5");
  EXPECT_EQ(floats.find("usage")->find("total_tokens")->text(), "5");
  request.base64 = true;
  const Node base64 = parse_json(embeddings_text(request, vectors, 5), "answer").value();
  for (std::size_t i = 0; i < 2; ++i) {
    const Node& item = floats.find("data")->items()[i];
    EXPECT_EQ(item.find("index")->text(), std::to_string(i));
    EXPECT_EQ(item.find("object")->text(), "embedding");
    const std::string bytes = from_base64(base64.find("data")->items()[i].find("embedding")->text()).value();
    ASSERT_EQ(bytes.size(), 12u);
    for (std::size_t e = 0; e < 3; ++e) {
      EXPECT_EQ(static_cast<float>(item.find("embedding")->items()[e].as_double().value()), vectors[i][e]);
      float number = 0;
      std::memcpy(&number, bytes.data() + e * 4, 4);
      EXPECT_EQ(number, vectors[i][e]);
    }
  }
}

}  // namespace
}  // namespace systole

// /v1/embeddings over a real connection and a tiny engine.

#include "execute/serve/embedding_route.h"

#include <gtest/gtest.h>

#include "execute/serve/testing/tiny_engine.h"
#include "execute/serve/testing/tiny_tokenizer.h"
#include "ground/base/document.h"
#include "ground/net/testing/http_wire.h"

namespace systole {
namespace {

class EmbeddingRoute : public testing::Test {
 protected:
  void start(bool vectors) {
    std::unique_ptr<Engine> engine = sharp_engine(*model_, *device_, {.hidden = vectors});
    api_ = std::make_unique<ServedApi>(
        ServedApi{.model = "m", .tokenizer = tiny_tokenizer(), .tokens_of = tiny_tokens, .never = {}, .context = 64});
    if (vectors) api_->vectors = ServedVectors{tiny_tokens, {Pooling::mean, true}, engine->hidden_size()};
    serving_ = std::make_unique<ServingThread>(std::move(engine), 8);
    server_ = HttpServer::start({.routes = api_routes(*api_, *serving_, clock_)}).value();
  }
  HttpWire begin(const std::string& body) const {
    HttpWire wire(server_->address());
    wire.say(fmt::format("POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", body.size(), body));
    return wire;
  }
  std::string ask(const std::string& body) const { return begin(body).answer(); }
  static Node body_of(const std::string& answer) {
    return parse_json(answer.substr(answer.find("\r\n\r\n") + 4), "answer").value();
  }

  FakeClock clock_;
  std::unique_ptr<const Model> model_ = make_decoder(tiny_decoder(tiny_tokenizer().vocabulary(), 64));
  std::unique_ptr<Device> device_ = make_reference_device();
  std::unique_ptr<ServedApi> api_;
  std::unique_ptr<ServingThread> serving_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(EmbeddingRoute, answers_with_a_vector_for_each_input) {
  start(true);
  const Node all = body_of(ask(R"({"model": "m", "input": ["ba", "no", "ba"]})"));
  ASSERT_EQ(all.find("data")->items().size(), 3u);
  const auto vector_of = [](const Node& node, std::size_t i) {
    return *node.find("data")->items()[i].find("embedding");
  };
  EXPECT_EQ(vector_of(all, 0).items().size(), 8u);
  EXPECT_EQ(vector_of(all, 0), vector_of(all, 2));
  EXPECT_NE(vector_of(all, 0), vector_of(all, 1));
  EXPECT_EQ(all.find("usage")->find("prompt_tokens")->text(),
            std::to_string(2 * tiny_tokens("ba").size() + tiny_tokens("no").size()));
  std::vector<Node> tokens;
  for (const std::int32_t token : tiny_tokens("ba")) tokens.emplace_back(token);
  const std::string as_tokens =
      to_json(Node::map({{"model", "m"}, {"input", Node::sequence(std::move(tokens))}, {"dimensions", 3}}));
  EXPECT_EQ(vector_of(body_of(ask(as_tokens)), 0).items().size(), 3u);
  EXPECT_EQ(serving_->counts().texts, 4);
}

TEST_F(EmbeddingRoute, wrong_requests_name_the_field) {
  start(true);
  const auto refused = [&](const std::string& more, int status, const Node& param) {
    const std::string answer = ask(R"({"model": "m")" + more + "}");
    EXPECT_EQ(status_of(answer), status) << answer;
    EXPECT_EQ(*body_of(answer).find("error")->find("param"), param) << answer;
  };
  refused("", 400, "input");
  refused(R"(, "input": "a", "dimensions": 9)", 400, "dimensions");
  refused(R"(, "input": [1000000])", 400, "input");
  refused(fmt::format(R"(, "input": "{}")", std::string(4000, '~')), 400, "input");
  EXPECT_EQ(status_of(ask(R"({"model": "other", "input": "a"})")), 404);
  EXPECT_EQ(status_of(ask("{")), 400);
  EXPECT_EQ(status_of(ask(R"({"model": "m", "input": "a"})")), 200);
}

TEST_F(EmbeddingRoute, a_model_served_without_vectors_says_so) {
  start(false);
  const std::string answer = ask(R"({"model": "m", "input": "a"})");
  EXPECT_EQ(status_of(answer), 400);
  EXPECT_NE(answer.find("--pooling"), answer.npos) << answer;
}

TEST_F(EmbeddingRoute, a_client_that_leaves_harms_nobody) {
  start(true);
  std::string many = R"("ba")";
  for (int i = 1; i < 2000; ++i) many += R"(, "ba no")";
  begin(R"({"model": "m", "input": [)" + many + "]}").hang_up();
  EXPECT_EQ(status_of(ask(R"({"model": "m", "input": "ba"})")), 200);
}

}  // namespace
}  // namespace systole

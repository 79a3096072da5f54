// `systole serve --lora`: adapters in PEFT's format, which requests name as their model; by one process and over ranks.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <tuple>
#include <utility>

#include "ground/net/socket.h"
#include "operate/cli/testing/serve_command.h"

namespace systole::cli {
namespace {

constexpr const char* kModel = SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/llama";
constexpr double kScale = 2;  // lora_alpha 4 over r 2
constexpr const char* kConfig = R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "bias": "none",
  "target_modules": ["q_proj", "down_proj"], "base_model_name_or_path": "llama")";

struct Matrix {
  std::string name;
  std::int64_t rows = 0, columns = 0;
  std::vector<float> numbers = {};
  float at(std::int64_t row, std::int64_t column) const {
    return numbers[static_cast<std::size_t>(row * columns + column)];
  }
};

// A layer that the adapter changes: A [2, inputs] and B [outputs, 2].
struct Change {
  std::string layer;
  Matrix a, b;
};

// `phase`: another adapter of the same shapes.
std::vector<Change> changes(double phase = 0, std::int64_t rank = 2) {
  std::vector<Change> all;
  for (const auto& [layer, outputs, inputs] :
       {std::tuple("model.layers.0.self_attn.q_proj", 16, 16), std::tuple("model.layers.1.mlp.down_proj", 16, 40)}) {
    const std::string before = std::string("base_model.model.") + layer;
    Change change{layer, {before + ".lora_A.weight", rank, inputs}, {before + ".lora_B.weight", outputs, rank}};
    for (Matrix* matrix : {&change.a, &change.b}) {
      for (std::int64_t i = 0; i < matrix->rows * matrix->columns; ++i)
        matrix->numbers.push_back(static_cast<float>(std::sin(1.3 * static_cast<double>(i) + all.size() + phase)));
    }
    all.push_back(std::move(change));
  }
  return all;
}

std::string bytes_of(std::uint64_t number) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &number, 8);
  return bytes;
}

std::string safetensors(const std::vector<Change>& all) {
  Node header = Node::map();
  std::string data;
  for (const Change& change : all) {
    for (const Matrix* matrix : {&change.a, &change.b}) {
      const std::size_t begin = data.size();
      data.append(reinterpret_cast<const char*>(matrix->numbers.data()), matrix->numbers.size() * sizeof(float));
      header.set(matrix->name, Node::map({{"dtype", "F32"},
                                          {"shape", Node::sequence({matrix->rows, matrix->columns})},
                                          {"data_offsets", Node::sequence({begin, data.size()})}}));
    }
  }
  std::string text = to_json(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return bytes_of(text.size()) + text + data;
}

// The model's file with W + scale B A in place of each W [outputs, inputs] that the adapter changes.
std::string merged() {
  std::string file = text_of(std::string(kModel) + "/model.safetensors");
  std::uint64_t size = 0;
  std::memcpy(&size, file.data(), 8);
  const Node header = parse_json(file.substr(8, size), "header").value();
  for (const Change& change : changes()) {
    const Node* tensor = header.find(change.layer + ".weight");
    CHECK(tensor != nullptr && tensor->text_at("dtype") == "F32", "'{}' is not as expected", change.layer);
    const auto begin = static_cast<std::size_t>(tensor->find("data_offsets")->items()[0].as_int().value());
    for (std::int64_t o = 0; o < change.b.rows; ++o) {
      for (std::int64_t i = 0; i < change.a.columns; ++i) {
        char* const at = file.data() + 8 + size + begin + static_cast<std::size_t>(o * change.a.columns + i) * 4;
        float weight = 0;
        std::memcpy(&weight, at, 4);
        double sum = weight;
        for (std::int64_t r = 0; r < 2; ++r) sum += kScale * double{change.b.at(o, r)} * double{change.a.at(r, i)};
        weight = static_cast<float>(sum);
        std::memcpy(at, &weight, 4);
      }
    }
  }
  return file;
}

class ServeLora : public testing::Test {
 protected:
  ServeLora() {
    systole_.write("style/adapter_config.json", std::string(kConfig) + "}");
    systole_.write("style/adapter_model.safetensors", safetensors(changes()));
    systole_.write("dora/adapter_config.json", std::string(kConfig) + R"(, "use_dora": true})");
    systole_.write("dora/adapter_model.safetensors", safetensors(changes()));
  }
  // An adapter of other numbers.
  void write_other(const std::string& folder, std::int64_t rank) const {
    systole_.write(folder + "/adapter_config.json",
                   fmt::format(R"({{"peft_type": "LORA", "r": {}, "lora_alpha": 4}})", rank));
    systole_.write(folder + "/adapter_model.safetensors", safetensors(changes(0.7, rank)));
  }
  static HttpReply ask(Server& server, const std::string& model) {
    return server.send("POST", "/v1/completions",
                       fmt::format(R"({{"model": "{}", "prompt": "some words of a prompt that is longer than a page", )"
                                   R"("temperature": 0, "max_tokens": 8, "min_tokens": 8, "logprobs": 2}})",
                                   model));
  }
  static std::string choices(const HttpReply& reply) {
    EXPECT_EQ(reply.status, 200) << reply.body;
    return to_json(*json_of(reply).find("choices"));
  }

  SystoleRunner systole_;
};

TEST_F(ServeLora, an_adapter_answers_as_its_model_merged_and_the_model_as_without) {
  std::string plain, text;
  {
    Server server(systole_, {"--name", "base"}, kModel);
    plain = choices(ask(server, "base"));
    EXPECT_TRUE(server.stop().ok()) << server.err();
  }
  systole_.write("merged/model.safetensors", merged());
  for (const char* name : {"config.json", "tokenizer.json"})
    systole_.write(std::string("merged/") + name, text_of(std::string(kModel) + "/" + name));
  {
    Server server(systole_, {"--name", "merged"}, "merged");
    text = text_at(json_of(ask(server, "merged")));
    EXPECT_TRUE(server.stop().ok()) << server.err();
  }
  Server server(systole_, {"--name", "base", "--lora", "style=style", "--lora", "again=style"}, kModel);
  for (int turn = 0; turn < 2; ++turn) {  // the second finds the prompt in the cache
    EXPECT_EQ(choices(ask(server, "base")), plain) << turn;
    for (const char* name : {"style", "again"}) {
      const HttpReply reply = ask(server, name);
      EXPECT_EQ(text_at(json_of(reply)), text) << name << turn;
      EXPECT_EQ(json_of(reply).text_at("model"), name);
      EXPECT_NE(choices(reply), plain) << name << turn;
    }
  }
  const Node models = json_of(server.send("GET", "/v1/models"));
  std::string listed;
  for (const Node& model : models.find("data")->items())
    listed += model.text_at("id") + " of '" + model.text_at("parent") + "', ";
  EXPECT_EQ(listed, "base of '', style of 'base', again of 'base', ");
  EXPECT_EQ(json_of(server.send("GET", "/v1/models/style")).text_at("id"), "style");
  const HttpReply unknown = ask(server, "stile");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_NE(unknown.body.find("'stile'"), std::string::npos) << unknown.body;
  EXPECT_NE(text_of(systole_.folder() / "serve.out").find("; adapters: style, again"), std::string::npos);
  EXPECT_TRUE(server.stop().ok()) << server.err();
}

TEST_F(ServeLora, over_ranks_each_request_has_its_adapter_and_the_log_probabilities_of_one_process) {
  write_other("other", 3);
  const auto answers = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--name", "base", "--lora", "style=style", "--lora", "other=other"});
    Server server(systole_, more, kModel);
    std::vector<std::string> all;
    for (int turn = 0; turn < 2; ++turn) {  // the second finds the prompt in the cache
      for (const char* name : {"base", "style", "other"}) all.push_back(choices(ask(server, name)));
    }
    EXPECT_TRUE(server.stop().ok()) << server.err();
    return all;
  };
  for (const std::string weights : {"stored", "int8"}) {
    const std::vector<std::string> whole = answers({"--weights", weights});
    EXPECT_NE(whole[0], whole[1]);
    EXPECT_NE(whole[1], whole[2]);
    EXPECT_EQ(answers({"--weights", weights, "--ranks", "2"}), whole) << weights;
  }
}

// Ranks of several machines have their own files.
TEST_F(ServeLora, a_rank_without_rank_0s_adapters_is_named) {
  systole_.write_secret("token", "00112233445566778899aabbccddeeff\n");
  write_other("moved", 2);
  write_other("wide", 3);
  const auto refusal = [&](const std::vector<std::string>& of_rank_1, const std::vector<std::string>& of_rank_0) {
    const std::string rendezvous = fmt::format("127.0.0.1:{}", free_port("127.0.0.1").value());
    const auto words = [&](const char* rank, const std::vector<std::string>& lora) {
      std::vector<std::string> all{"serve",  kModel,   "--backend",    "reference", "--port",
                                   "0",      "--name", "base",         "--ranks",   "2",
                                   "--rank", rank,     "--rendezvous", rendezvous,  "--ranks-token-file",
                                   "token"};
      for (const std::string& word : lora) all.insert(all.end(), {"--lora", word});
      return all;
    };
    std::thread rank([&] { EXPECT_NE(systole_.run(words("1", of_rank_1)).exit.code, 0); });
    const Captured got = systole_.run(words("0", of_rank_0));
    rank.join();
    EXPECT_NE(got.exit.code, 0);
    EXPECT_NE(got.err.find("hint: "), std::string::npos) << got.err;
    return got.err;
  };
  const auto expect = [&](const std::vector<std::string>& of_rank_1, const std::string& part) {
    const std::string text = refusal(of_rank_1, {"a=style"});
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect({}, "rank 1: it has no adapter 'a', which rank 0 serves");
  expect({"a=style", "b=style"}, "rank 1: it has an adapter 'b', which rank 0 does not serve");
  expect({"a=wide"}, "rank 1: its adapter 'a' has rank 3, rank 0's has 2");
  expect({"a=moved"}, "rank 1: its adapter 'a' has other numbers than rank 0's");
  expect({"a=absent"}, "rank 1: adapter 'a' (absent");
  expect({"a=dora"}, "rank 1: adapter 'a' (dora/adapter_config.json): use_dora");
}

TEST_F(ServeLora, what_is_no_adapter_of_the_model_is_refused_before_anything_is_served) {
  const auto refused = [&](std::vector<std::string> more, const std::string& part) {
    more.insert(more.begin(), {"serve", kModel, "--backend", "reference", "--port", "0", "--name", "base"});
    const Captured got = systole_.run(more);
    EXPECT_NE(got.exit.code, 0) << part;
    EXPECT_NE(got.err.find(part), std::string::npos) << got.err;
    EXPECT_NE(got.err.find("hint: "), std::string::npos) << got.err;
  };
  refused({"--lora", "style"}, "'style' is not NAME=PATH");
  refused({"--lora", "base=style"}, "two models 'base'");
  refused({"--lora", "a=style", "--lora", "a=style"}, "two models 'a'");
  refused({"--lora", "a=dora"}, "dora/adapter_config.json: error: use_dora");
}

}  // namespace
}  // namespace systole::cli

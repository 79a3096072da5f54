// Reads the folder of a tiny BertModel; what it computes is compared by tests/serving/bert_vectors.py.

#include "execute/weights/bert_folder.h"

#include <gtest/gtest.h>

#include <cstring>

#include "execute/checkpoint/safetensors.h"
#include "ground/base/document.h"
#include "ground/base/testing/files.h"

namespace systole {
namespace {

Node tiny_config() {
  return Node::map({{"model_type", "bert"},
                    {"hidden_size", 4},
                    {"num_attention_heads", 2},
                    {"num_hidden_layers", 1},
                    {"intermediate_size", 6},
                    {"max_position_embeddings", 5},
                    {"type_vocab_size", 2},
                    {"vocab_size", 7},
                    {"layer_norm_eps", 1e-12},
                    {"hidden_act", "gelu"}});
}

struct Files {
  Node config = tiny_config();
  std::string prefix = {};
  std::map<std::string, Shape> more = {};
  std::string without = {};
  bool old_norms = false;
};

// Writes it; a tensor's numbers are 0, 1, 2, …
void write_folder(const std::string& path, const Files& files) {
  const auto store = open_posix_store(path).value();
  write_whole(*store, "config.json", to_json(files.config)).value();
  std::map<std::string, Shape> tensors = files.more;
  const auto add = [&](std::string name, Shape shape) {
    if (name == files.without) return;
    if (files.old_norms && name.find("LayerNorm") != name.npos)
      name.replace(name.rfind('.'), name.npos, name.ends_with("weight") ? ".gamma" : ".beta");
    tensors[files.prefix + name] = std::move(shape);
  };
  const auto both = [&](const std::string& name, Shape weight) {
    add(name + ".bias", {weight[0]});
    add(name + ".weight", std::move(weight));
  };
  add("embeddings.word_embeddings.weight", {7, 4});
  add("embeddings.position_embeddings.weight", {5, 4});
  add("embeddings.token_type_embeddings.weight", {2, 4});
  both("embeddings.LayerNorm", {4});
  for (const char* name :
       {"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"})
    both(std::string("encoder.layer.0.") + name, {4, 4});
  both("encoder.layer.0.attention.output.LayerNorm", {4});
  both("encoder.layer.0.intermediate.dense", {6, 4});
  both("encoder.layer.0.output.dense", {4, 6});
  both("encoder.layer.0.output.LayerNorm", {4});
  std::vector<float> numbers(64);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  std::vector<checkpoint::SafetensorsSource> sources;
  for (const auto& [name, shape] : tensors)
    sources.push_back(checkpoint::SafetensorsSource::of(
        name, DType::f32, shape,
        std::as_bytes(std::span(numbers).first(static_cast<std::size_t>(num_elements(shape))))));
  ASSERT_TRUE(checkpoint::write_safetensors(*store, "model.safetensors", std::move(sources), {}).ok());
}

class BertFolders : public testing::Test {
 protected:
  std::string path() const { return folder_.path(); }
  TemporaryFolder folder_;
};

TEST_F(BertFolders, are_read_as_they_are_published) {
  for (const bool old_norms : {false, true}) {
    for (const char* prefix : {"", "bert."}) {
      Files files{.prefix = prefix, .old_norms = old_norms};
      files.more = {{std::string(prefix) + "pooler.dense.weight", {4, 4}},
                    {std::string(prefix) + "pooler.dense.bias", {4}},
                    {std::string(prefix) + "embeddings.position_ids", {1, 5}},
                    {"cls.predictions.bias", {7}},
                    {"cls.predictions.decoder.weight", {7, 4}}};
      write_folder(path(), files);
      ASSERT_TRUE(is_bert_folder(path()));
      const auto opened = open_bert_folder(path());
      ASSERT_TRUE(opened.ok()) << opened.error().message;
      EXPECT_EQ(opened->model.layers, 1);
      EXPECT_EQ(opened->model.width, 4);
      EXPECT_EQ(opened->model.context, 5);
      EXPECT_EQ(opened->model.eps, 1e-12);
      EXPECT_EQ(opened->model.activation, Activation::gelu);
      std::vector<float> up(24);
      ParameterPlace place{"blocks.0.mlp.up", DType::f32, {4, 6}, std::as_writable_bytes(std::span(up))};
      NameMap map = opened->folder->map;
      std::erase_if(map.tensors, [](const MappedTensor& t) { return t.ours != "blocks.0.mlp.up"; });
      ASSERT_EQ(map.tensors.size(), 1u);
      for (const std::string& name : opened->folder->files.names())  // the others are no part of it
        if (name != map.tensors[0].theirs) map.empty.push_back(name);
      const Status read = import_weights(opened->folder->files, map, std::span(&place, 1));
      ASSERT_TRUE(read.ok()) << read.error().message;
      EXPECT_EQ(up[1], 4.0F) << "ours is [in, out], the transpose of theirs";
      EXPECT_EQ(up[6], 1.0F);
    }
  }
}

TEST_F(BertFolders, what_does_not_fit_is_refused_by_name) {
  const auto refused = [&](const Files& files, ErrorKind kind, const std::string& name) {
    write_folder(path(), files);
    const auto opened = open_bert_folder(path());
    ASSERT_FALSE(opened.ok()) << name;
    EXPECT_EQ(opened.error().kind, kind) << opened.error().message;
    EXPECT_NE(opened.error().message.find(name), std::string::npos) << opened.error().message;
  };
  refused({.without = "encoder.layer.0.output.dense.weight"}, ErrorKind::not_found,
          "encoder.layer.0.output.dense.weight");
  refused({.more = {{"encoder.layer.1.output.dense.weight", {4, 6}}}}, ErrorKind::invalid, "encoder.layer.1");
  const auto with = [](const char* entry, const Node& value) {
    Files files;
    files.config.set(entry, value);
    return files;
  };
  refused(with("position_embedding_type", "relative_key"), ErrorKind::unsupported, "position_embedding_type");
  refused(with("is_decoder", true), ErrorKind::unsupported, "is_decoder");
  refused(with("hidden_act", "mish"), ErrorKind::unsupported, "mish");
  refused(with("hidden_size", "many"), ErrorKind::corrupt, "");
  refused(with("num_attention_heads", 3), ErrorKind::corrupt, "3 heads");
  refused(with("num_hidden_layers", 1'000'000'000'000), ErrorKind::corrupt, "");
  refused(with("vocab_size", 8), ErrorKind::invalid, "word_embeddings");
  EXPECT_EQ(bert_of_config("{", "config.json").error().kind, ErrorKind::corrupt);
  EXPECT_EQ(bert_of_config("{}", "config.json").error().kind, ErrorKind::corrupt);
}

TEST_F(BertFolders, other_models_are_none) {
  EXPECT_FALSE(is_bert_folder(path()));
  EXPECT_FALSE(is_bert_folder(""));
  const auto store = open_posix_store(path()).value();
  for (const char* config : {R"({"model_type": "gpt2"})", "{}", "[]", "{"}) {
    write_whole(*store, "config.json", config).value();
    EXPECT_FALSE(is_bert_folder(path())) << config;
  }
}

}  // namespace
}  // namespace systole

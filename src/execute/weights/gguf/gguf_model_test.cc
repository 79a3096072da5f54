#include "execute/weights/gguf/gguf_model.h"

#include <gtest/gtest.h>

#include <set>

#include "execute/weights/hf_config.h"
#include "execute/weights/hf_folder.h"
#include "execute/weights/import.h"
#include "execute/weights/testing/gguf_of_folder.h"
#include "ground/base/testing/files.h"
#include "ground/base/testing/places.h"

namespace systole {
namespace {

const std::string kGolden = SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/";
const std::string kPath = "m.gguf";

GgufFile open(Store& store, const std::string& bytes) {
  write_whole(store, kPath, bytes).value();
  return GgufFile::open(store, kPath).value();
}

// The model that a config.json decides.
ModelSpec model_of(const std::string& config) {
  WorkloadOptions options;
  options.weights = [&](const std::string&) { return values_of_config(config, "config.json"); };
  return read_workload(
             "{ systole: 1, name: x, model: { weights: w }, data: { train: { files: x }, tokenizer: { vocabulary: 300 "
             "} "
             "}, train: { batch: 1, steps: 1, optimizer: { kind: sgd, rate: 1 } } }",
             "job.yaml", options)
      .value()
      .model;
}

class GoldenGguf : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Store> folder_ = open_posix_store(kGolden + GetParam()).value();
  std::unique_ptr<Store> store_ = make_memory_store();
};

TEST_P(GoldenGguf, SaysWhatItsConfigSays) {
  const GgufFile file = open(*store_, gguf_of_folder(kGolden + GetParam()));
  const ModelSpec theirs = model_of(read_text(*folder_, "config.json").value());
  const ModelSpec ours = model_of(config_of_gguf(file).value());
  EXPECT_EQ(config_of(ours), config_of(theirs));
}

// All parameters of a model, from a folder or from a file, as floats.
std::map<std::string, std::vector<float>> imported(const WeightFiles& files, const NameMap& map) {
  std::map<std::string, std::vector<float>> numbers;
  std::vector<ParameterPlace> places;
  for (const MappedTensor& mapped : map.tensors) {
    const Shape shape{mapped.shape.size() == 1 ? 1 : mapped.shape[0], mapped.columns};
    std::vector<float>& into = numbers[mapped.ours];
    into.resize(static_cast<std::size_t>(num_elements(shape)));
    places.push_back({mapped.ours, DType::f32, shape, std::as_writable_bytes(std::span(into))});
  }
  import_weights(files, map, places).value();
  return numbers;
}

TEST_P(GoldenGguf, HasTheWeightsOfTheFolderBitForBit) {
  const ModelSpec model = model_of(read_text(*folder_, "config.json").value());
  const NameMap names = name_map(model).value();
  const auto theirs = WeightFiles::open(*folder_, "").value();
  const auto expected = imported(theirs, fitting(names, theirs));
  const auto ours = weights_of_gguf(open(*store_, gguf_of_folder(kGolden + GetParam())), *store_, kPath).value();
  EXPECT_EQ(imported(ours, gguf_names(names)), expected);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenGguf, testing::Values("gpt2", "llama", "llama_bf16"),
                         [](const auto& name) { return name.param; });

// A llama of one layer, two heads of four, width 32; `change` may set keys before it is written.
GgufWriter tiny(const std::set<std::string>& without = {}) {
  GgufWriter file;
  file.text("general.architecture", "llama");
  for (const auto& [key, value] :
       {std::pair("llama.block_count", 1U), std::pair("llama.context_length", 64U),
        std::pair("llama.embedding_length", 32U), std::pair("llama.feed_forward_length", 32U),
        std::pair("llama.attention.head_count", 2U), std::pair("llama.attention.key_length", 4U),
        std::pair("llama.attention.value_length", 4U)}) {
    if (!without.contains(key)) file.u32(key, value);
  }
  return file.f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
}

GgufWriter& with_embedding(GgufWriter& file) {
  return file.tensor("token_embd.weight", {3, 32}, 1, std::string(192, '\0'));
}

Node config(GgufWriter file) {
  const auto store = make_memory_store();
  return parse_json(config_of_gguf(open(*store, with_embedding(file).finish())).value(), "config").value();
}

Error refused(GgufWriter file) {
  const auto store = make_memory_store();
  const auto got = config_of_gguf(open(*store, file.finish()));
  return got.ok() ? error(ErrorKind::internal, "taken") : got.error();
}

TEST(GgufModel, HasDefaultsWhereKeysAreMissing) {
  const Node read = config(tiny());
  EXPECT_EQ(read.find("head_dim")->text(), "4");
  EXPECT_EQ(read.find("num_key_value_heads")->text(), "2");
  EXPECT_EQ(read.find("rms_norm_eps")->text(), "1e-05");
  EXPECT_EQ(read.find("rope_parameters")->find("rope_theta")->text(), "10000.0");
  EXPECT_EQ(read.find("rope_parameters")->find("rope_type")->text(), "default");
  EXPECT_EQ(read.find("tie_word_embeddings")->text(), "true");
  EXPECT_EQ(read.find("vocab_size")->text(), "3");
  EXPECT_EQ(config(tiny({"llama.attention.key_length", "llama.attention.value_length"})).find("head_dim")->text(),
            "16");
  GgufWriter untied = tiny();
  untied.tensor("output.weight", {3, 32}, 1, std::string(192, '\0'));
  EXPECT_EQ(config(untied).find("tie_word_embeddings")->text(), "false");
}

// Qwen3 pairs halves, as Hugging Face does: its rows are in order.
TEST(GgufModel, IsAQwen3) {
  GgufWriter file;
  file.text("general.architecture", "qwen3");
  for (const auto& [key, value] :
       {std::pair("qwen3.block_count", 1U), std::pair("qwen3.context_length", 64U),
        std::pair("qwen3.embedding_length", 32U), std::pair("qwen3.feed_forward_length", 32U),
        std::pair("qwen3.attention.head_count", 2U), std::pair("qwen3.attention.head_count_kv", 1U),
        std::pair("qwen3.attention.key_length", 4U), std::pair("qwen3.attention.value_length", 4U)})
    file.u32(key, value);
  file.f32("qwen3.attention.layer_norm_rms_epsilon", 1e-6F).f32("qwen3.rope.freq_base", 1e6F);
  std::string rows;
  for (const float row : {0, 1, 2, 3})
    for (int i = 0; i < 32; ++i) rows += GgufWriter::raw(row);
  file.tensor("blk.0.attn_k.weight", {4, 32}, 0, rows);
  file.tensor("token_embd.weight", {304, 32}, 1, std::string(304 * 64, '\0'));
  const auto store = make_memory_store();
  const GgufFile opened = open(*store, file.finish());
  const ModelSpec model = model_of(config_of_gguf(opened).value());
  EXPECT_TRUE(model.as<DecoderSpec>().qk_norm);
  EXPECT_EQ(model.as<DecoderSpec>().head, 4);
  EXPECT_EQ(model.as<DecoderSpec>().theta, 1e6);
  const WeightFiles files = weights_of_gguf(opened, *store, kPath).value();
  std::vector<float> row(32);
  ASSERT_TRUE(files.read_elements("blk.0.attn_k.weight", 32, std::as_writable_bytes(std::span(row))).ok());
  EXPECT_EQ(row[0], 1);
  const NameMap names = gguf_names(name_map(model).value());
  std::set<std::string> theirs;
  for (const MappedTensor& tensor : names.tensors) theirs.insert(tensor.theirs);
  EXPECT_EQ(theirs, (std::set<std::string>{"token_embd.weight", "output_norm.weight", "blk.0.attn_norm.weight",
                                           "blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight",
                                           "blk.0.attn_q_norm.weight", "blk.0.attn_k_norm.weight",
                                           "blk.0.attn_output.weight", "blk.0.ffn_norm.weight", "blk.0.ffn_gate.weight",
                                           "blk.0.ffn_up.weight", "blk.0.ffn_down.weight"}));
}

// A head of two frequencies, 1 and 0.01, in a context of 100: one turns 16 times, the other 0.16 times.
TEST(GgufModel, FindsLlama3sScalingInItsFactors) {
  const auto scaled = [](float first, float second) {
    GgufWriter file = tiny();
    file.u32("llama.rope.scaling.original_context_length", 100);
    file.tensor("rope_freqs.weight", {2}, 0, GgufWriter::raw(first) + GgufWriter::raw(second));
    return file;
  };
  const Node rope = *config(scaled(1, 32)).find("rope_parameters");
  EXPECT_EQ(rope.find("rope_type")->text(), "llama3");
  EXPECT_EQ(rope.find("factor")->as_double().value(), 32);
  EXPECT_EQ(rope.find("original_max_position_embeddings")->text(), "100");
  EXPECT_EQ(config(scaled(1, 1)).find("rope_parameters")->find("rope_type")->text(), "default");
  for (const auto& [first, second] : {std::pair(2.0F, 32.0F), std::pair(0.5F, 0.5F), std::pair(1.0F, std::nanf(""))}) {
    GgufWriter file = scaled(first, second);
    const Error why = refused(with_embedding(file));
    EXPECT_EQ(why.kind, ErrorKind::unsupported);
    EXPECT_TRUE(why.message.starts_with("rope_freqs.weight has ")) << why.message;
  }
}

TEST(GgufModel, RefusesByName) {
  const auto with = [](const std::string& key, std::uint32_t value) {
    GgufWriter file = tiny();
    file.u32(key, value);
    return refused(with_embedding(file)).message;
  };
  EXPECT_EQ(with("llama.expert_count", 8), "llama.expert_count is 8, and only 0 is followed here");
  EXPECT_EQ(with("llama.attention.sliding_window", 16),
            "llama.attention.sliding_window is 16, and only 0 is followed here");
  EXPECT_EQ(with("llama.attention.sliding_window", 64), "taken");
  EXPECT_EQ(with("llama.rope.dimension_count", 2),
            "llama.rope.dimension_count is 2, and only a head's size, 4, is followed here");
  GgufWriter yarn = tiny();
  yarn.text("llama.rope.scaling.type", "yarn");
  EXPECT_EQ(refused(with_embedding(yarn)).message, "llama.rope.scaling.type is 'yarn', and only none is followed here");
  EXPECT_EQ(refused(tiny()).message, "the file has no token_embd.weight of rows, the embedding of tokens");
  GgufWriter none = tiny({"llama.block_count"});
  EXPECT_EQ(refused(with_embedding(none)).message, "the file has no llama.block_count");
  const Error other = refused(GgufWriter().text("general.architecture", "qwen2"));
  EXPECT_EQ(other.message, "a GGUF model of architecture 'qwen2' cannot be taken");
  EXPECT_EQ(other.kind, ErrorKind::unsupported);
  EXPECT_EQ(refused(GgufWriter()).message, "the file has no general.architecture");
}

TEST(GgufModel, RefusesTensorsThatAreNotInHeads) {
  const auto store = make_memory_store();
  GgufWriter odd = tiny();
  odd.tensor("blk.0.attn_q.weight", {6, 32}, 1, std::string(384, '\0'));
  EXPECT_EQ(weights_of_gguf(open(*store, odd.finish()), *store, kPath).error().message,
            "tensor 'blk.0.attn_q.weight' is [6, 32], which is no rows of heads of 4");
  GgufWriter thirds;
  thirds.text("general.architecture", "gpt2").tensor("blk.0.attn_qkv.bias", {4}, 0, std::string(16, '\0'));
  EXPECT_EQ(weights_of_gguf(open(*store, thirds.finish()), *store, kPath).error().message,
            "tensor 'blk.0.attn_qkv.bias' is F32[4], which is not q, k and v");
}

// A quantised head's rows come in Hugging Face's order, as floats.
TEST(GgufModel, ReordersQuantisedRows) {
  const auto store = make_memory_store();
  std::string rows;
  for (const char row : {0, 1, 2, 3, 4, 5, 6, 7}) rows += GgufWriter::raw(std::uint16_t{0x3c00}) + std::string(32, row);
  GgufWriter file = tiny();
  file.tensor("blk.0.attn_k.weight", {8, 32}, 8, rows);
  const WeightFiles files = weights_of_gguf(open(*store, file.finish()), *store, kPath).value();
  EXPECT_EQ(files.tensors().at("blk.0.attn_k.weight").dtype, DType::f32);
  std::vector<float> read(7 * 32);
  ASSERT_TRUE(files.read_elements("blk.0.attn_k.weight", 32, std::as_writable_bytes(std::span(read))).ok());
  for (const auto& [row, from] : {std::pair(0, 2), {1, 1}, {2, 3}, {3, 4}, {4, 6}, {5, 5}, {6, 7}})
    EXPECT_EQ(read[static_cast<std::size_t>(row) * 32 + 31], static_cast<float>(from)) << row;
}

// As chat_template.jinja, which a folder may have.
TEST_P(GoldenGguf, HasTheChatTemplateOfItsMetadata) {
  const TemporaryFolder folder;
  const auto store = open_posix_store(folder.path()).value();
  const auto open_with = [&](const std::string& chat_template) {
    write_whole(*store, kPath, gguf_of_folder(kGolden + GetParam(), chat_template)).value();
    const std::string path = folder.path() + "/" + kPath;
    return open_hf_folder(path, workload_around(path).value().model).value();
  };
  const HfFolder with = open_with("{{ messages }}");
  EXPECT_EQ(read_text(*with.store, kHfChatTemplate).value(), "{{ messages }}");
  const HfFolder without = open_with("");
  EXPECT_FALSE(without.store->exists(kHfChatTemplate).value());
}

}  // namespace
}  // namespace systole

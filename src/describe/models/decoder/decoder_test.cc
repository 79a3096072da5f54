#include "describe/models/decoder/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "describe/graph/text.h"
#include "describe/graph/verify.h"
#include "describe/graph/work.h"
#include "describe/models/decoder/parameters.h"
#include "describe/models/tiny_inputs.h"

namespace systole {
namespace {

using Data = std::map<std::string, HostTensor>;

DecoderConfig tiny() {
  DecoderConfig config;
  config.layers = 3;
  config.width = 12;
  config.heads = 3;
  config.mlp = 20;
  config.vocabulary = 11;
  config.context = 24;
  return config;
}

// Each choice other than GPT-2's.
DecoderConfig modern() {
  DecoderConfig config = tiny();
  config.kv_heads = 1;
  config.norm = ModelSpec::Norm::rms;
  config.activation = ModelSpec::Activation::silu;
  config.position = ModelSpec::Position::rotary;
  config.bias = false;
  config.tied = false;
  return config;
}

// Every choice of llama's, at a head that is not width / heads and with frequencies of all three kinds of stretching.
DecoderConfig llama() {
  DecoderConfig config = modern();
  config.family = "llama";
  config.heads = 4;
  config.kv_heads = 2;
  config.head = 6;
  config.gated = true;
  config.theta = 50;
  config.rope_scaling = RotaryScaling{8, 1, 4, 12};
  config.eps = 1e-6;
  return config;
}

// PaLM's and Nemotron's choices together: one norm for both parts of a block, one key head, squared relu.
DecoderConfig parallel() {
  DecoderConfig config = tiny();
  config.kv_heads = 1;
  config.parallel = true;
  config.activation = ModelSpec::Activation::relu2;
  config.position = ModelSpec::Position::none;
  config.bias = false;
  return config;
}

// Mistral's: a llama that looks back so far and no further, less than a bucket of prefill.
DecoderConfig windowed() {
  DecoderConfig config = llama();
  config.window = 4;
  return config;
}

std::vector<DecoderConfig> all_kinds() { return {tiny(), modern(), llama(), parallel(), windowed()}; }

HostTensor ints(Shape shape, std::vector<double> values) { return HostTensor(DType::i32, std::move(shape), values); }
HostTensor scalar(double value) { return HostTensor(DType::i64, {}, std::vector<double>{value}); }

// Rows of one document each, each token labelled with its successor, random at the end.
Data one_document(std::int64_t rows, std::int64_t seq, std::int64_t vocabulary) {
  const Type ids(DType::i32, {rows, seq});
  Data data{{"tokens", random_ids(ids, 1, vocabulary)},
            {"labels", random_ids(ids, 2, vocabulary)},
            {"segments", HostTensor(DType::i32, ids.shape)},
            {"positions", HostTensor(DType::i32, ids.shape)},
            {"seed", scalar(5)},
            {"step", scalar(6)},
            {"row", scalar(0)}};
  for (std::int64_t i = 0; i < rows * seq; ++i) {
    data["segments"].set(i, 1);
    data["positions"].set(i, static_cast<double>(i % seq));
    if ((i + 1) % seq != 0) data["labels"].set(i, data["tokens"].at(i + 1));
  }
  return data;
}

TEST(Decoder, parameters_carry_names_inits_and_decay) {
  DecoderConfig config = tiny();
  config.tied = false;
  const auto model = make_decoder(config);
  for (const Parameter& p : model->parameters()) {
    EXPECT_TRUE(p.trainable) << p.name;
    for (const std::string& name : p.type.names()) EXPECT_NE(name, "") << p.name;
    const bool vector = p.name.ends_with("bias") || p.name.ends_with("scale");
    EXPECT_EQ(p.decay, !vector) << p.name;
    const bool residual = p.name.ends_with("attn.o") || p.name.ends_with("mlp.down");
    EXPECT_DOUBLE_EQ(p.init.scale, vector ? 0 : residual ? 0.02 / std::sqrt(6.0) : 0.02) << p.name;
  }
  EXPECT_EQ(to_string(model->parameters()[4].type), "f32[layer=3, embed=12, heads=3, head=4]");
  EXPECT_EQ(model->parameters()[4].name, "blocks.{layer}.attn.q");
}

TEST(Decoder, llama_has_three_matrices_of_feed_forward_and_heads_of_their_own_width) {
  std::map<std::string, std::string> types;
  const auto model = make_decoder(llama());
  for (const Parameter& p : model->parameters()) types[p.name] = to_string(p.type);
  EXPECT_EQ(types.size(), 2 + 2 + 7 + 1);  // embeddings and head, norms of a block, projections, norm
  EXPECT_EQ(types["blocks.{layer}.attn.q"], "f32[layer=3, embed=12, heads=4, head=6]");
  EXPECT_EQ(types["blocks.{layer}.attn.v"], "f32[layer=3, embed=12, kv_heads=2, head=6]");
  EXPECT_EQ(types["blocks.{layer}.mlp.gate"], "f32[layer=3, embed=12, mlp=20]");
  EXPECT_EQ(types["head"], "f32[vocab=11, embed=12]");
}

TEST(Decoder, a_parallel_block_has_one_norm_and_reads_it_twice) {
  const auto model = make_decoder(parallel());
  for (const Parameter& p : model->parameters()) EXPECT_EQ(p.name.find("norm2"), std::string::npos) << p.name;
  DecoderConfig in_series = parallel();
  in_series.parallel = false;
  const auto other = make_decoder(in_series);
  EXPECT_EQ(num_parameters(*other) - num_parameters(*model), 3 * 12);
  const Data data = one_document(1, 6, 11);
  EXPECT_NE(run(model->loss({1, 6}, false), data)[0], run(other->loss({1, 6}, false), data)[0]);
}

// Of a row, only tokens within reach of the last change its logits: each of 3 layers looks 3 further back.
TEST(Decoder, a_window_hides_what_lies_further_back) {
  DecoderConfig config = windowed();
  const auto logits_of_last = [&](const Data& data, std::int64_t seq) {
    const HostTensor all = run(in_f64(make_decoder(config)->forward({1, seq})), data)[0];
    std::vector<double> last;
    for (std::int64_t v = 0; v < config.vocabulary; ++v) last.push_back(all.at((seq - 1) * config.vocabulary + v));
    return last;
  };
  const std::int64_t seq = 16, reach = config.layers * (config.window - 1);
  Data data = one_document(1, seq, config.vocabulary);
  const std::vector<double> before = logits_of_last(data, seq);
  for (const std::int64_t at : {seq - 2 - reach, seq - 1 - reach}) {
    Data changed = data;
    changed["tokens"].set(at, static_cast<double>(static_cast<int>(data["tokens"].at(at) + 1) % 11));
    EXPECT_EQ(logits_of_last(changed, seq) == before, at < seq - 1 - reach) << at;
  }
}

TEST(Decoder, graphs_verify_read_back_and_declare_the_same_parameters) {
  for (DecoderConfig config : all_kinds()) {
    config.dropout = 0.1;
    config.lora.rank = 2;
    const auto model = make_decoder(config);
    for (const Graph& graph : {model->loss({2, 8}, true), model->loss({2, 8}, false), model->forward({2, 8}),
                               model->prefill(2, 8, 16), model->decode(2, 16)}) {
      verify(graph);
      EXPECT_EQ(to_text(*parse_graph(to_text(graph), "graph.txt")), to_text(graph));
      const std::vector<Parameter>& parameters = model->parameters();
      ASSERT_GT(graph.inputs().size(), parameters.size());
      for (std::size_t i = 0; i < parameters.size(); ++i) EXPECT_EQ(graph.inputs()[i].parameter, parameters[i]);
    }
  }
}

TEST(Decoder, uniform_logits_lose_ln_vocabulary_a_label) {
  const auto model = make_decoder(tiny());
  const Graph graph = in_f64(model->loss({2, 8}, true));
  Data data = one_document(2, 8, 11);
  data["labels"].set(3, -1);  // ignored: 15 remain
  std::vector<HostTensor> inputs = arguments(graph, data);
  for (std::size_t i = 0; i < model->parameters().size(); ++i)
    inputs[i] = HostTensor(DType::f64, model->parameters()[i].type.shape);
  EXPECT_NEAR(evaluate(graph, inputs)[0].at(0), 15 * std::log(11.0), 1e-12);
}

TEST(Decoder, unrolled_is_rolled_bit_for_bit) {
  for (DecoderConfig config : all_kinds()) {
    config.dropout = 0.2;
    config.lora.rank = 2;
    config.lora.scale = 0.5;
    DecoderConfig flat = config;
    flat.unrolled = true;
    const auto rolled = make_decoder(config), unrolled = make_decoder(flat);
    const Data data = one_document(2, 8, 11);
    EXPECT_EQ(run(rolled->loss({2, 8}, true), data), run(unrolled->loss({2, 8}, true), data));
    const Type cache = rolled->decode(2, 12).input_named("cache.k").type();
    const Data next{{"tokens", ints({2, 1}, {4, 9})},
                    {"position", ints({2}, {3, 8})},
                    {"cache.k", random_tensor(cache, "k", 0, 1)},
                    {"cache.v", random_tensor(cache, "v", 0, 1)}};
    Data prompt = next;
    prompt["tokens"] = ints({1, 4}, {1, 2, 3, 4});
    prompt["length"] = ints({1}, {3});
    prompt["slot"] = ints({1}, {1});
    EXPECT_EQ(run(rolled->prefill(2, 4, 12), prompt), run(unrolled->prefill(2, 4, 12), prompt));
    EXPECT_EQ(run(rolled->decode(2, 12), next), run(unrolled->decode(2, 12), next));
  }
}

TEST(Decoder, dropout_differs_by_step_site_and_row_and_ends_with_training) {
  DecoderConfig config = tiny();
  config.dropout = 0.3;
  const auto model = make_decoder(config);
  Data data = one_document(2, 8, 11);
  const HostTensor first = run(model->loss({2, 8}, true), data)[0];
  EXPECT_EQ(first, run(model->loss({2, 8}, true), data)[0]);
  data["step"] = scalar(7);
  EXPECT_NE(first, run(model->loss({2, 8}, true), data)[0]);
  data["step"] = scalar(6);
  data["row"] = scalar(1);
  EXPECT_NE(first, run(model->loss({2, 8}, true), data)[0]);
  EXPECT_EQ(run(make_decoder(tiny())->loss({2, 8}, false), data), run(model->loss({2, 8}, false), data));
}

// Row by row is the whole batch: dropout belongs to the row's place in the global batch.
TEST(Decoder, microbatches_sum_to_the_batch) {
  DecoderConfig config = tiny();
  config.dropout = 0.3;
  const auto model = make_decoder(config);
  const Data data = one_document(3, 8, 11);
  double sum = 0;
  for (int row = 0; row < 3; ++row) {
    Data part = data;
    for (const char* name : {"tokens", "labels", "segments", "positions"}) {
      part[name] = HostTensor(DType::i32, {1, 8});
      for (int i = 0; i < 8; ++i) part[name].set(i, data.at(name).at(row * 8 + i));
    }
    part["row"] = scalar(row);
    sum += run(in_f64(model->loss({1, 8}, true)), part)[0].at(0);
  }
  EXPECT_NEAR(sum, run(in_f64(model->loss({3, 8}, true)), data)[0].at(0), 1e-11);
}

// Law packed-is-unpacked: documents in one row of `seq`, the rest padding, lose what they lose alone.
void expect_packed_is_unpacked(const DecoderConfig& config, const std::vector<int>& lengths, std::int64_t seq) {
  const auto model = make_decoder(config);
  const Type ids(DType::i32, {1, seq});
  Data packed{{"tokens", random_ids(ids, 3, config.vocabulary)},
              {"labels", HostTensor(DType::i32, ids.shape)},
              {"segments", HostTensor(DType::i32, ids.shape)},
              {"positions", HostTensor(DType::i32, ids.shape)}};
  for (std::int64_t i = 0; i < seq; ++i) packed["labels"].set(i, -1);
  double alone = 0;
  int start = 0;
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    const int length = lengths[d];
    Data single = one_document(1, length, config.vocabulary);
    for (int i = 0; i < length; ++i) {
      const double label = i + 1 < length ? packed["tokens"].at(start + i + 1) : -1;
      single["tokens"].set(i, packed["tokens"].at(start + i));
      single["labels"].set(i, label);
      packed["labels"].set(start + i, label);
      packed["segments"].set(start + i, static_cast<double>(d + 1));
      packed["positions"].set(start + i, i);
    }
    alone += run(in_f64(model->loss({1, length}, false)), single)[0].at(0);
    start += length;
  }
  EXPECT_GT(alone, 0);
  EXPECT_NEAR(run(in_f64(model->loss({1, seq}, false)), packed)[0].at(0), alone, 1e-11)
      << lengths.size() << " documents";
}

TEST(Decoder, packed_is_unpacked) {
  for (const DecoderConfig& config : all_kinds()) {
    expect_packed_is_unpacked(config, {20}, 24);
    expect_packed_is_unpacked(config, {9, 13}, 24);
    expect_packed_is_unpacked(config, {1, 2, 1, 1, 2, 1, 1, 2, 1, 1, 1, 2, 1, 1, 2, 1, 1}, 24);
  }
}

// Prefill of prompts of unlike lengths into slots, then token by token: the logits are those of the whole rows. The
// slots are filled last to first and the caches begin with rubbish; slot 1 stays idle.
void expect_decode_is_forward(const DecoderConfig& config) {
  constexpr std::int64_t kSlots = 3, kBucket = 6, kCache = 12, kSeq = 9;
  const auto model = make_decoder(config);
  const Data data = one_document(kSlots, kSeq, config.vocabulary);
  const HostTensor whole = run(in_f64(model->forward({kSlots, kSeq})), data)[0];
  const auto token = [&](std::int64_t slot, std::int64_t position) {
    return data.at("tokens").at(slot * kSeq + position);
  };
  const auto expect_row = [&](const HostTensor& logits, std::int64_t row, std::int64_t slot, std::int64_t position) {
    for (std::int64_t v = 0; v < config.vocabulary; ++v) {
      EXPECT_NEAR(logits.at(row * config.vocabulary + v), whole.at((slot * kSeq + position) * config.vocabulary + v),
                  1e-11);
    }
  };
  const Graph prefill = in_f64(model->prefill(kSlots, kBucket, kCache)), decode = in_f64(model->decode(kSlots, kCache));
  const Type cache(DType::f64, prefill.type(prefill.output_named("cache.k")).shape);
  HostTensor k = random_tensor(cache, "k", 0, 9), v = random_tensor(cache, "v", 0, 9);
  const std::int64_t lengths[kSlots] = {3, 0, 6};
  for (const std::int64_t slot : {2, 0}) {
    HostTensor tokens(DType::i32, {1, kBucket});
    for (std::int64_t i = 0; i < kBucket; ++i) tokens.set(i, i < lengths[slot] ? token(slot, i) : 10);
    const std::vector<HostTensor> out = run(prefill, {{"tokens", tokens},
                                                      {"length", ints({1}, {static_cast<double>(lengths[slot])})},
                                                      {"slot", ints({1}, {static_cast<double>(slot)})},
                                                      {"cache.k", k},
                                                      {"cache.v", v}});
    k = out[0];
    v = out[1];
    expect_row(out[2], 0, slot, lengths[slot] - 1);
  }
  for (std::int64_t step = 0; step < 3; ++step) {
    Data next{{"tokens", ints({kSlots, 1}, {0, 0, 0})},
              {"position", ints({kSlots}, {0, -1, 0})},
              {"cache.k", k},
              {"cache.v", v}};
    for (const std::int64_t slot : {0, 2}) {
      next["tokens"].set(slot, token(slot, lengths[slot] + step));
      next["position"].set(slot, static_cast<double>(lengths[slot] + step));
    }
    const std::vector<HostTensor> out = run(decode, next);
    k = out[0];
    v = out[1];
    for (const std::int64_t slot : {0, 2}) expect_row(out[2], slot, slot, lengths[slot] + step);
  }
}

TEST(Decoder, prefill_and_decode_are_the_whole_forward) {
  for (const DecoderConfig& config : all_kinds()) expect_decode_is_forward(config);
  DecoderConfig adapted = tiny();
  adapted.lora.rank = 2;
  expect_decode_is_forward(adapted);
}

TEST(Decoder, adapters_train_alone_and_begin_as_the_base) {
  DecoderConfig config = tiny();
  const auto base = make_decoder(config);
  config.lora.rank = 8;
  const auto adapted = make_decoder(config);
  EXPECT_EQ(num_parameters(*adapted) - num_trainable(*adapted), num_parameters(*base));
  // q, k, v and o: 12 + 12 each; up and down: 12 + 20 each.
  EXPECT_EQ(num_trainable(*adapted), 3 * 8 * (4 * 24 + 2 * 32));
  const Data data = one_document(1, 6, 11);
  const Graph graph = in_f64(adapted->loss({1, 6}, true));
  std::vector<HostTensor> inputs = arguments(graph, data);
  const double with_adapters = evaluate(graph, inputs)[0].at(0);
  for (std::size_t i = 0; i < adapted->parameters().size(); ++i) {
    const Parameter& p = adapted->parameters()[i];
    EXPECT_EQ(p.trainable, p.name.find("lora") != std::string::npos);
    if (!p.name.ends_with("lora_b")) continue;
    EXPECT_EQ(p.init.kind, Init::Kind::zeros);
    inputs[i] = HostTensor(DType::f64, p.type.shape);
  }
  const double alone = run(in_f64(base->loss({1, 6}, true)), data)[0].at(0);
  EXPECT_NEAR(evaluate(graph, inputs)[0].at(0), alone, 1e-12);
  EXPECT_GT(std::abs(with_adapters - alone), 1e-3);
}

// The convention: 2 FLOPs per matmul parameter used and token forward, and the causal half of attention: each query
// sees (seq + 1) / 2 keys on average, 4 head FLOPs a pair and head.
TEST(Decoder, model_flops_follow_the_convention) {
  for (const DecoderConfig& kind : all_kinds()) {
    const DecoderConfig config = checked(kind);
    const std::int64_t rows = 2, seq = 8, tokens = rows * seq;
    const std::int64_t heads = 2 * (config.heads + config.kv_heads) * config.head, matrices = config.gated ? 3 : 2;
    const std::int64_t block = config.width * (heads + matrices * config.mlp);
    const std::int64_t matmul = config.layers * block + config.vocabulary * config.width;
    std::int64_t pairs = 0;
    for (std::int64_t i = 0; i < seq; ++i) pairs += std::min(i + 1, config.window > 0 ? config.window : seq);
    pairs *= config.layers * rows * config.heads;
    EXPECT_EQ(work_of(make_decoder(config)->loss({rows, seq}, true)).model_flops,
              2 * matmul * tokens + 4 * pairs * config.head);
  }
}

std::string message_of(const DecoderConfig& config) {
  try {
    make_decoder(config);
  } catch (const Failure& failure) { return to_string(failure.error()); }
  return "accepted";
}

TEST(Decoder, refusals_name_the_key_and_what_would_do) {
  DecoderConfig config = tiny();
  config.heads = 5;
  EXPECT_EQ(message_of(config),
            "error: model.heads: 5 does not divide model.width: 12\n  hint: heads may be 1, 2, 3, 4, 6, 12");
  config = tiny();
  config.kv_heads = 2;
  EXPECT_NE(message_of(config).find("model.kv_heads: 2 does not divide model.heads: 3"), std::string::npos);
  config = tiny();
  config.lora = {4, 1, {"atn.q"}};
  EXPECT_NE(message_of(config).find("did you mean 'attn.q'"), std::string::npos);
  config.lora.targets = {"mlp.gate"};
  EXPECT_NE(message_of(config).find("has no 'mlp.gate'"), std::string::npos) << "not gated";
  config = tiny();
  config.dropout = 1;
  EXPECT_NE(message_of(config).find("model.dropout"), std::string::npos);
  config = modern();
  config.head = 5;
  EXPECT_NE(message_of(config).find("even number"), std::string::npos);
  EXPECT_THROW(make_decoder(tiny())->loss({1, 25}, true), Failure);
  EXPECT_THROW(make_decoder(tiny())->prefill(1, 8, 7), Failure);
  EXPECT_THROW(make_decoder(tiny())->decode(1, 25), Failure);
}

}  // namespace
}  // namespace systole

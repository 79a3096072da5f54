// A decoder gives the same results for rows one by one, packed into one row, or token by token over caches.

#include <gtest/gtest.h>

#include "describe/models/decoder/testing/tiny_decoder.h"

namespace systole {
namespace {

using Data = std::map<std::string, HostTensor>;

// Row by row equals the whole batch: dropout depends on the row's index in the global batch.
TEST(DecoderRows, microbatches_sum_to_the_batch) {
  DecoderSpec config = tiny_decoder();
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

// Law packed-is-unpacked: documents packed into one row of `sequence_length` tokens, then padding, have the losses of
// each alone.
void expect_packed_is_unpacked(const DecoderSpec& config, const std::vector<int>& lengths,
                               std::int64_t sequence_length) {
  const auto model = make_decoder(config);
  const Type ids(DType::i32, {1, sequence_length});
  Data packed{{"tokens", random_ids(ids, 3, config.vocabulary)},
              {"labels", HostTensor(DType::i32, ids.shape)},
              {"segments", HostTensor(DType::i32, ids.shape)},
              {"positions", HostTensor(DType::i32, ids.shape)}};
  for (std::int64_t i = 0; i < sequence_length; ++i) packed["labels"].set(i, -1);
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
  EXPECT_NEAR(run(in_f64(model->loss({1, sequence_length}, false)), packed)[0].at(0), alone, 1e-11)
      << lengths.size() << " documents";
}

// Tokens of a row compete for capacity, so packing and decoding keep the law only when no token is dropped.
std::vector<DecoderSpec> undropped(std::vector<DecoderSpec> all) {
  for (DecoderSpec& config : all) {
    config.moe.dropless = true;
    config.moe.group = 0;
  }
  return all;
}

TEST(DecoderRows, packed_is_unpacked) {
  for (const DecoderSpec& config : undropped(all_decoders())) {
    expect_packed_is_unpacked(config, {20}, 24);
    expect_packed_is_unpacked(config, {9, 13}, 24);
    expect_packed_is_unpacked(config, {1, 2, 1, 1, 2, 1, 1, 2, 1, 1, 1, 2, 1, 1, 2, 1, 1}, 24);
  }
}

// Prompts in pieces, then token by token for two sequences at once: the logits equal those of the whole rows. The pages
// of a sequence are scattered and begin with garbage; a third entry is idle.
void expect_steps_are_forward(const DecoderSpec& config) {
  constexpr std::int64_t kSequences = 2, kPiece = 4, kSequenceLength = 12;
  const PagedCache cache{9, 3, 4};
  const auto model = make_decoder(config);
  const Data data = one_document(kSequences, kSequenceLength, config.vocabulary);
  const HostTensor whole = run(in_f64(model->forward({kSequences, kSequenceLength})), data)[0];
  const auto token = [&](std::int64_t sequence, std::int64_t position) {
    return data.at("tokens").at(sequence * kSequenceLength + position);
  };
  const auto expect_row = [&](const HostTensor& logits, std::int64_t row, std::int64_t sequence,
                              std::int64_t position) {
    for (std::int64_t v = 0; v < config.vocabulary; ++v) {
      EXPECT_NEAR(logits.at(row * config.vocabulary + v),
                  whole.at((sequence * kSequenceLength + position) * config.vocabulary + v), 1e-11);
    }
  };
  const Graph piece = in_f64(model->step(1, kPiece, cache)), next = in_f64(model->step(3, 1, cache));
  const Type pool(DType::f64, piece.type(piece.output_named("cache.k")).shape);
  HostTensor k = random_tensor(pool, "k", 0, 9), v = random_tensor(pool, "v", 0, 9);
  const std::vector<std::vector<double>> tables{{7, 2, 8, 0}, {1, 5, 3, 4}};
  const auto step = [&](const Graph& graph, Data inputs) {
    inputs["cache.k"] = k;
    inputs["cache.v"] = v;
    const std::vector<HostTensor> out = run(graph, inputs);
    k = out[0];
    v = out[1];
    return out[2];
  };
  const std::int64_t lengths[kSequences] = {3, 6};
  for (std::int64_t s = 0; s < kSequences; ++s) {
    for (std::int64_t first = 0; first < lengths[s]; first += kPiece) {
      const std::int64_t count = std::min(kPiece, lengths[s] - first);
      HostTensor tokens(DType::i32, {1, kPiece});
      for (std::int64_t i = 0; i < kPiece; ++i) tokens.set(i, i < count ? token(s, first + i) : 10);
      const HostTensor logits = step(piece, {{"tokens", tokens},
                                             {"table", ints({1, 4}, tables[static_cast<std::size_t>(s)])},
                                             {"start", ints({1}, {static_cast<double>(first)})},
                                             {"last", ints({1}, {static_cast<double>(count - 1)})}});
      expect_row(logits, 0, s, first + count - 1);
    }
  }
  for (std::int64_t i = 0; i < 6; ++i) {
    const auto at = [&](std::int64_t s) { return static_cast<double>(lengths[s] + i); };
    const HostTensor logits =
        step(next, {{"tokens", ints({3, 1}, {token(1, lengths[1] + i), 0, token(0, lengths[0] + i)})},
                    {"table", ints({3, 4}, {1, 5, 3, 4, 1, 5, 3, 4, 7, 2, 8, 0})},
                    {"start", ints({3}, {at(1), -1, at(0)})}});
    expect_row(logits, 0, 1, lengths[1] + i);
    expect_row(logits, 2, 0, lengths[0] + i);
  }
}

TEST(DecoderRows, steps_are_the_whole_forward) {
  for (const DecoderSpec& config : undropped(serving_decoders())) expect_steps_are_forward(config);
  DecoderSpec adapted = tiny_decoder();
  adapted.adapters.rank = 2;
  expect_steps_are_forward(adapted);
}

}  // namespace
}  // namespace systole

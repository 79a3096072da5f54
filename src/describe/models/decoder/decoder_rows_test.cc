// A decoder gives the same whichever way its rows come: one by one, packed into one, or token by token over caches.

#include <gtest/gtest.h>

#include "describe/models/decoder/testing/tiny_decoder.h"

namespace systole {
namespace {

using Data = std::map<std::string, HostTensor>;

// Row by row is the whole batch: dropout belongs to the row's place in the global batch.
TEST(DecoderRows, microbatches_sum_to_the_batch) {
  DecoderConfig config = tiny_decoder();
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

// Who competes for places is a matter of the row: packing and decoding keep the law where nobody is dropped.
std::vector<DecoderConfig> undropped(std::vector<DecoderConfig> all) {
  for (DecoderConfig& config : all) {
    config.experts.dropless = true;
    config.experts.group = 0;
  }
  return all;
}

TEST(DecoderRows, packed_is_unpacked) {
  for (const DecoderConfig& config : undropped(all_decoders())) {
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

TEST(DecoderRows, prefill_and_decode_are_the_whole_forward) {
  for (const DecoderConfig& config : undropped(serving_decoders())) expect_decode_is_forward(config);
  DecoderConfig adapted = tiny_decoder();
  adapted.lora.rank = 2;
  expect_decode_is_forward(adapted);
}

}  // namespace
}  // namespace systole

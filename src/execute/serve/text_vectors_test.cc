// Vectors of texts by an engine, compared with a bert written out in loops of f64, and with the logits of prefill.

#include "execute/serve/text_vectors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <condition_variable>
#include <mutex>

#include "describe/ir/layer_names.h"
#include "describe/models/bert/bert.h"
#include "describe/models/t5/testing/tiny_t5.h"
#include "execute/serve/int8_loader.h"
#include "execute/serve/serving_thread.h"
#include "execute/serve/testing/tiny_engine.h"
#include "ground/base/philox.h"

namespace systole {
namespace {

using Tokens = std::vector<std::int32_t>;
using Vector = std::vector<double>;

BertSpec tiny_bert() {
  BertSpec spec;
  spec.layers = 2;
  spec.width = 8;
  spec.heads = 2;
  spec.mlp = 12;
  spec.vocabulary = 17;
  spec.context = 70;
  return spec;
}

// A bert's last hidden states, [tokens][width], as the paper and BertModel of transformers have them: no op of ours.
class PlainBert {
 public:
  PlainBert(const BertSpec& spec, const Model& model) : spec_(spec) {
    for (const Parameter& p : model.parameters()) weights_.emplace(p.name, sharp_value(p));
  }

  std::vector<Vector> states(const Tokens& tokens) const {
    std::vector<Vector> x;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      Vector row(width());
      for (std::size_t e = 0; e < width(); ++e)
        row[e] = at("embed.tokens", static_cast<std::size_t>(tokens[i]) * width() + e) +
                 at("embed.positions", i * width() + e) + at("embed.types", e);
      x.push_back(norm(row, "embed.norm", 0, 1));
    }
    for (std::size_t layer = 0; layer < static_cast<std::size_t>(spec_.layers); ++layer) x = block(x, layer);
    return x;
  }

 private:
  std::size_t width() const { return static_cast<std::size_t>(spec_.width); }
  double at(const std::string& name, std::size_t i) const { return weights_.at(name).at(static_cast<std::int64_t>(i)); }
  Vector norm(const Vector& x, const std::string& name, std::size_t layer, std::size_t layers) const {
    const std::string in = layers == 1 ? name : "blocks.{layer}." + name;
    double mean = 0, square = 0;
    for (const double value : x) mean += value / static_cast<double>(x.size());
    for (const double value : x) square += (value - mean) * (value - mean) / static_cast<double>(x.size());
    Vector y;
    for (std::size_t e = 0; e < x.size(); ++e)
      y.push_back((x[e] - mean) / std::sqrt(square + spec_.eps) * at(in + ".scale", layer * x.size() + e) +
                  at(in + ".bias", layer * x.size() + e));
    return y;
  }
  // x W + b of a layer's projection, whatever its dims are called.
  Vector project(const Vector& x, const std::string& name, std::size_t layer, std::size_t out) const {
    const std::string in = "blocks.{layer}." + name;
    Vector y(out);
    for (std::size_t o = 0; o < out; ++o) {
      y[o] = at(in + "_bias", layer * out + o);
      for (std::size_t i = 0; i < x.size(); ++i) y[o] += x[i] * at(in, (layer * x.size() + i) * out + o);
    }
    return y;
  }
  std::vector<Vector> block(const std::vector<Vector>& x, std::size_t layer) const {
    std::vector<Vector> q, k, v, result;
    for (const Vector& row : x) {
      q.push_back(project(row, "attn.q", layer, width()));
      k.push_back(project(row, "attn.k", layer, width()));
      v.push_back(project(row, "attn.v", layer, width()));
    }
    for (std::size_t t = 0; t < x.size(); ++t) {
      const Vector out = project(attended(q[t], k, v), "attn.o", layer, width());
      Vector mid(width());
      for (std::size_t e = 0; e < width(); ++e) mid[e] = x[t][e] + out[e];
      mid = norm(mid, "norm1", layer, 2);
      Vector hidden = project(mid, "mlp.up", layer, static_cast<std::size_t>(spec_.mlp));
      for (double& h : hidden) h = h / 2 * (1 + std::erf(h / std::sqrt(2.0)));
      const Vector down = project(hidden, "mlp.down", layer, width());
      for (std::size_t e = 0; e < width(); ++e) mid[e] += down[e];
      result.push_back(norm(mid, "norm2", layer, 2));
    }
    return result;
  }
  // Every head of one query over all keys.
  Vector attended(const Vector& q, const std::vector<Vector>& k, const std::vector<Vector>& v) const {
    const auto head = static_cast<std::size_t>(spec_.head_width());
    Vector result(width());
    for (std::size_t first = 0; first < width(); first += head) {
      Vector weight;
      double sum = 0;
      for (const Vector& key : k) {
        double score = 0;
        for (std::size_t d = first; d < first + head; ++d) score += q[d] * key[d];
        weight.push_back(std::exp(score / std::sqrt(static_cast<double>(head))));
        sum += weight.back();
      }
      for (std::size_t s = 0; s < v.size(); ++s) {
        for (std::size_t d = first; d < first + head; ++d) result[d] += weight[s] / sum * v[s][d];
      }
    }
    return result;
  }

  BertSpec spec_;
  std::map<std::string, HostTensor> weights_;
};

Vector pooled(const std::vector<Vector>& states, Pooling pooling) {
  if (pooling == Pooling::last) return states.back();
  if (pooling == Pooling::cls) return states.front();
  Vector mean(states[0].size());
  for (const Vector& row : states) {
    for (std::size_t e = 0; e < row.size(); ++e) mean[e] += row[e] / static_cast<double>(states.size());
  }
  return mean;
}

Tokens tokens_of(std::size_t length, std::uint64_t key, std::int32_t vocabulary) {
  PhiloxStream random(key);
  Tokens tokens;
  for (std::size_t i = 0; i < length; ++i)
    tokens.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(vocabulary))));
  return tokens;
}

TextsRequest::Vectors vectors_of(Engine& engine, std::vector<Tokens> texts, const PoolingSpec& pooling) {
  TextVectors vectors(engine);
  TextsRequest::Vectors result;
  vectors.add({.texts = std::move(texts), .pooling = pooling, .done = [&](Result<TextsRequest::Vectors> done) {
                 result = std::move(done).value();
               }});
  while (vectors.step().value()) {}
  EXPECT_EQ(vectors.waiting(), 0);
  return result;
}

// Law vectors-are-those-of-the-plain-model. Lengths: one token, a bucket's end, one past it, the whole context.
TEST(TextVectors, of_a_bert_are_those_of_a_plain_one) {
  const auto model = make_bert(tiny_bert());
  const auto device = make_reference_device();
  const auto engine = sharp_engine(*model, *device, {.hidden = true});
  EXPECT_FALSE(engine->generates());
  EXPECT_EQ(engine->hidden_size(), 8);
  const PlainBert plain(tiny_bert(), *model);
  std::vector<Tokens> texts;
  for (const std::size_t length : {5, 1, 16, 17, 64, 65, 70, 2}) texts.push_back(tokens_of(length, length, 17));
  for (const Pooling pooling : {Pooling::mean, Pooling::last, Pooling::cls}) {
    const TextsRequest::Vectors vectors = vectors_of(*engine, texts, {pooling, false});
    ASSERT_EQ(vectors.size(), texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const Vector expected = pooled(plain.states(texts[i]), pooling);
      for (std::size_t e = 0; e < expected.size(); ++e)
        EXPECT_NEAR(static_cast<double>(vectors[i][e]), expected[e], 2e-5)
            << name_of(pooling) << ", text " << i << ", number " << e;
    }
  }
}

TEST(TextVectors, of_a_decoder_are_what_its_head_reads) {
  const auto model = make_decoder(tiny_decoder());
  const auto device = make_reference_device();
  const auto engine = sharp_engine(*model, *device, {.hidden = true});
  EXPECT_TRUE(engine->generates());
  HostTensor embedding;
  for (const Parameter& p : model->parameters()) {
    if (p.name == "embed.tokens") embedding = sharp_value(p);
  }
  const auto alone = sharp_engine(*model, *device, {.hidden = true, .generates = false});
  EXPECT_FALSE(alone->generates());
  EXPECT_LT(alone->executor().arena(), engine->executor().arena()) << "it has no cache";
  for (const std::size_t length : {1, 7, 12}) {
    const Tokens text = tokens_of(length, 9 + length, 13);
    const std::vector<float> last = vectors_of(*engine, {text}, {Pooling::last, false})[0];
    EXPECT_EQ(vectors_of(*alone, {text}, {Pooling::last, false})[0], last);
    ASSERT_TRUE(engine->prefill(0, text).ok());
    for (std::int64_t v = 0; v < 13; ++v) {
      double logit = 0;
      for (std::int64_t e = 0; e < 8; ++e)
        logit += static_cast<double>(last[static_cast<std::size_t>(e)]) * embedding.at(v * 8 + e);
      EXPECT_NEAR(logit, static_cast<double>(engine->logits(0)[static_cast<std::size_t>(v)]), 1e-4) << length;
    }
  }
}

// The sharp values of what an executor has: parameters, or one layer of them.
LoadSome sharp_source(const Model& model) {
  return [&model](Executor& executor) -> Status {
    const std::vector<ProgramValue>& values = executor.program().values;
    for (std::size_t v = 0; v < values.size(); ++v) {
      for (const Parameter& p : model.parameters()) {
        const std::optional<LayerName> all = layer_name(p.name), one = layer_name(values[v].name);
        if (all ? !one || all->prefix != one->prefix || all->after != one->after : p.name != values[v].name) continue;
        const HostTensor whole = sharp_value(p);
        const auto size = static_cast<std::size_t>(values[v].type.bytes().count());
        const std::size_t first = all ? static_cast<std::size_t>(one->first - all->first) * size : 0;
        TRY(executor.write(static_cast<int>(v), 0, whole.bytes().subspan(first, size)));
      }
    }
    return {};
  };
}

TEST(TextVectors, with_weights_in_int8_point_the_same_way) {
  const auto device = make_reference_device();
  std::vector<std::unique_ptr<const Model>> models;
  models.push_back(make_bert(tiny_bert()));
  models.push_back(make_decoder(tiny_decoder()));
  for (const auto& model : models) {
    auto made = Engine::create(*model, *device, {.parameter = DType::i8, .hidden = true});
    ASSERT_TRUE(made.ok()) << made.error().message;
    ASSERT_TRUE(load_int8(**made, *model, DType::f32, sharp_source(*model), *device).ok());
    const std::vector<Tokens> texts{tokens_of(9, 3, 13), tokens_of(2, 4, 13)};
    const TextsRequest::Vectors exact = vectors_of(*sharp_engine(*model, *device, {.hidden = true}), texts, {});
    const TextsRequest::Vectors rough = vectors_of(**made, texts, {});
    for (std::size_t i = 0; i < texts.size(); ++i) {
      double same = 0;
      for (std::size_t e = 0; e < exact[i].size(); ++e)
        same += static_cast<double>(exact[i][e]) * static_cast<double>(rough[i][e]);
      EXPECT_GT(same, 0.99) << model->family() << ", text " << i;
    }
  }
}

// Law alone-is-batched: what else is computed, and in which bucket, changes no vector.
TEST(TextVectors, do_not_depend_on_other_texts) {
  const auto model = make_bert(tiny_bert());
  const auto device = make_reference_device();
  const auto engine = sharp_engine(*model, *device, {.hidden = true});
  std::vector<Tokens> texts;
  for (std::size_t i = 0; i < 90; ++i) texts.push_back(tokens_of(1 + i * 7 % 70, i, 17));
  const TextsRequest::Vectors together = vectors_of(*engine, texts, {});
  for (std::size_t i = 0; i < texts.size(); i += 11)
    EXPECT_EQ(together[i], vectors_of(*engine, {texts[i]}, {})[0]) << "text " << i;
  for (const std::vector<float>& vector : together) {
    double square = 0;
    for (const float x : vector) square += static_cast<double>(x) * static_cast<double>(x);
    EXPECT_NEAR(square, 1, 1e-6);
  }
}

TEST(TextVectors, refuse_what_does_not_fit_and_weights_that_are_not_finite) {
  const auto model = make_bert(tiny_bert());
  const auto device = make_reference_device();
  const auto engine = sharp_engine(*model, *device, {.hidden = true});
  TextVectors vectors(*engine);
  std::vector<std::string> told;
  const auto add = [&](std::vector<Tokens> texts, bool unwanted = false) {
    vectors.add({.texts = std::move(texts),
                 .done =
                     [&](Result<TextsRequest::Vectors> done) {
                       told.push_back(done.ok() ? fmt::format("{} vectors", done->size()) : done.error().message);
                     },
                 .is_unwanted = [unwanted] { return unwanted; }});
  };
  add({Tokens(71, 1)});
  add({{1}, {}});
  add({{17}});
  add({});
  EXPECT_EQ(told, (std::vector<std::string>{"a prompt of 71 tokens for a cache of 70", "a prompt without tokens",
                                            "token 17 is outside the model's vocabulary of 17", "0 vectors"}));
  told.clear();
  add({{1}, {2}}, true);
  add({{3}});
  while (vectors.step().value()) {}
  EXPECT_EQ(told, (std::vector<std::string>{"nobody waits for these vectors any more", "1 vectors"}));
  told.clear();
  spoil_weights(*model, *engine);
  add({{1}, {2}});
  add({Tokens(70, 1)});
  const Result<bool> spoiled = vectors.step();
  ASSERT_FALSE(spoiled.ok());
  vectors.fail_all(spoiled.error());
  EXPECT_EQ(told, std::vector<std::string>(2, "the vector of a text is not finite"));
  EXPECT_FALSE(vectors.step().value());
}

TEST(TextVectors, models_without_them_are_refused_by_name) {
  const auto device = make_reference_device();
  const auto asked = Engine::create(*make_t5(tiny_t5()), *device, {.hidden = true});
  ASSERT_FALSE(asked.ok());
  EXPECT_EQ(asked.error().kind, ErrorKind::unsupported);
  EXPECT_NE(asked.error().message.find("t5"), std::string::npos) << asked.error().message;
  EXPECT_FALSE(Engine::create(*make_bert(tiny_bert()), *device, {}).ok()) << "it generates nothing";
}

TEST(TextVectors, a_serving_thread_computes_them_beside_answers) {
  const auto model = make_decoder(tiny_decoder());
  const auto device = make_reference_device();
  const std::vector<Tokens> texts{{1, 2, 3}, {4}, {1, 2, 3}};
  const TextsRequest::Vectors expected =
      vectors_of(*sharp_engine(*model, *device, {.hidden = true}), texts, {Pooling::mean, true});
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Result<TextsRequest::Vectors>> answers;
  bool ended = false;
  const auto wait = [&](std::size_t count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(60), [&] { return answers.size() >= count; });
  };
  ServingThread serving(sharp_engine(*model, *device, {.hidden = true}), 4);
  const auto embed = [&](std::vector<Tokens> of) {
    serving.embed({.texts = std::move(of), .done = [&](Result<TextsRequest::Vectors> done) {
                     const std::lock_guard lock(mutex);
                     answers.push_back(std::move(done));
                     changed.notify_all();
                   }});
  };
  serving.submit({.prompt = {1}, .max_tokens = 8}, {[](std::int32_t) { return true; },
                                                    [&](SequenceEnd) {
                                                      const std::lock_guard lock(mutex);
                                                      ended = true;
                                                      changed.notify_all();
                                                    },
                                                    [](const Error&) {}});
  embed(texts);
  ASSERT_TRUE(wait(1));
  ASSERT_TRUE(answers[0].ok());
  EXPECT_EQ(*answers[0], expected);
  embed(std::vector<Tokens>(16385, Tokens{1}));
  ASSERT_TRUE(wait(2));
  EXPECT_EQ(answers[1].error().kind, ErrorKind::busy);
  embed({Tokens(13, 1)});
  ASSERT_TRUE(wait(3));
  EXPECT_EQ(answers[2].error().code, ErrorCode::context_length_exceeded);
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return ended; }));
  }
  EXPECT_EQ(serving.counts().texts, 3);
  EXPECT_EQ(serving.counts().refused, 2);
  serving.drain();
  embed({{1}});
  ASSERT_TRUE(wait(4));
  EXPECT_EQ(answers[3].error().kind, ErrorKind::interrupted);
}

TEST(TextVectors, are_pooled_over_their_tokens) {
  const std::vector<float> states{1, 2, 3, 6, 2, 4};  // three tokens
  EXPECT_EQ(text_vector(states, 2, {Pooling::mean, false}), (std::vector<float>{2, 4}));
  EXPECT_EQ(text_vector(states, 2, {Pooling::last, false}), (std::vector<float>{2, 4}));
  EXPECT_EQ(text_vector(states, 2, {Pooling::cls, false}), (std::vector<float>{1, 2}));
  EXPECT_EQ(text_vector(std::vector<float>{3, 4}, 2, {}), (std::vector<float>{0.6F, 0.8F}));
  EXPECT_EQ(text_vector(std::vector<float>{0, 0}, 2, {}), (std::vector<float>{0, 0}));
  std::vector<float> vector{3, 4, 12};
  shorten(vector, 2, false);
  EXPECT_EQ(vector, (std::vector<float>{3, 4}));
  shorten(vector, 2, true);
  EXPECT_EQ(vector, (std::vector<float>{0.6F, 0.8F}));
}

}  // namespace
}  // namespace systole

#pragma once
// A ServingLoop on a tiny model, and what it hands out.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "execute/serve/serving_loop.h"
#include "execute/serve/testing/tiny_engine.h"
#include "ground/base/clock.h"
#include "ground/base/philox.h"

namespace systole {

using Tokens = std::vector<std::int32_t>;

struct Answer {
  Tokens tokens;
  std::optional<SequenceEnd> end;
  std::vector<TokenLogprobs> logprobs;
  bool operator==(const Answer&) const = default;
};

class ServingLoopTest : public testing::Test {
 protected:
  std::unique_ptr<Engine> engine(std::int64_t slots) {
    return sharp_engine(*model_, *device_, {.slots = slots, .cache_type = cache_type_});
  }
  static SequenceReceiver into(Answer& answer) {
    return {[&](std::int32_t token) {
              answer.tokens.push_back(token);
              return true;
            },
            [&](SequenceEnd end) {
              EXPECT_FALSE(answer.end) << "once";
              answer.end = end;
            },
            [&](const TokenLogprobs& logprobs) {
              EXPECT_EQ(answer.logprobs.size(), answer.tokens.size()) << "before its token";
              answer.logprobs.push_back(logprobs);
            }};
  }
  static SequenceRequest request(std::uint64_t id, Tokens prompt) {
    return {.id = id,
            .prompt = std::move(prompt),
            .sampling = {.temperature = 1.5, .seed = id},
            .draw = id,
            .max_tokens = 5,
            .stop = {2}};
  }
  Answer alone(const SequenceRequest& request) {
    const auto own = engine(1);
    ServingLoop loop(*own, {});
    Answer answer;
    loop.add(request, into(answer)).value();
    while (loop.step().value()) {}
    return answer;
  }

  std::unique_ptr<const Model> model_ = make_decoder(tiny_decoder());
  std::unique_ptr<Device> device_ = make_reference_device();
  DType cache_type_ = DType::f32;
};

// The context is long enough for several pages.
class ServingLoopPages : public ServingLoopTest {
 protected:
  ServingLoopPages() { model_ = make_decoder(tiny_decoder(13, 80)); }
  static Tokens text(std::int64_t length, std::uint64_t stream) {
    Tokens tokens;
    for (std::int64_t i = 0; i < length; ++i)
      tokens.push_back(
          static_cast<std::int32_t>(philox(9, philox_counter(static_cast<std::uint64_t>(i), stream))[0] % 13));
    return tokens;
  }
};

// A millisecond for each token that the engine computes, those that fill a prefill up included.
class EngineClock : public FakeClock {
 public:
  explicit EngineClock(const Engine& engine) : engine_(engine) {}
  Seconds now() override {
    std::int64_t length = 0;
    for (std::int64_t slot = 0; slot < engine_.slots(); ++slot) length += engine_.length(slot);
    const std::int64_t fresh = std::max<std::int64_t>(length - std::exchange(length_, length), 0);
    advance(Seconds(1e-3 * static_cast<double>(fresh <= 2 ? fresh : fresh <= 16 ? 16 : fresh <= 64 ? 64 : 80)));
    return FakeClock::now();
  }

 private:
  const Engine& engine_;
  std::int64_t length_ = 0;
};

// Tokens 3 to 12 spell 0 to 9, and two of them nothing.
inline std::shared_ptr<grammar::TokenMasks> digits(const char* pattern) {
  std::vector<std::string> spellings(13);
  for (std::size_t token = 3; token < 13; ++token) spellings[token] = std::to_string(token - 3);
  const auto trie = std::make_shared<const grammar::TokenTrie>(std::move(spellings));
  return std::make_shared<grammar::TokenMasks>(grammar::Grammar::of_regex(pattern).value(), trie);
}

}  // namespace systole

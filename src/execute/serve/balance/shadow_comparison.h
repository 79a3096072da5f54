#pragma once
// A request that is also sent to a shadow, a replica with another model whose answer nobody gets: whether both answers have
// the same text. Of one thread, that of HttpUpstreams' loop. Part of Balancer.
//
// The texts are compared as JSON writes them: the values of "text" and "content", of all events of a stream in a row. Two
// answers are not compared if one is longer than kMost bytes, or is not complete with status 200, nor if none has text.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "execute/serve/balance/balancer_state.h"

namespace systole {

// Of an answer of OpenAI's interface, or of the events of one; nothing: it has none, as one of vectors.
std::optional<std::string> generated_text(std::string_view body);

class ShadowComparison {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 20;
  enum Side { kUser, kShadow };

  explicit ShadowComparison(std::shared_ptr<Balancer::State> state) : state_(std::move(state)) {}
  void take(Side side, std::string_view piece);
  void end(Side side, int status);  // the answer is complete; when both are, they are compared

 private:
  const std::shared_ptr<Balancer::State> state_;
  std::array<std::string, 2> bodies_;
  std::array<bool, 2> has_ended_ = {};
  bool is_left_out_ = false;
};

// The shadow's answer, at `place`.
class ShadowSink : public HttpReplySink {
 public:
  ShadowSink(std::shared_ptr<Balancer::State> state, Balancer::State::Place place, std::int64_t tokens,
             std::shared_ptr<ShadowComparison> comparison);
  void begin(const HttpReplyHead& head) override;
  Status take(std::string piece) override;
  void end(const Status& how) override;

 private:
  const std::shared_ptr<Balancer::State> state_;
  const Balancer::State::Place place_;
  const std::int64_t tokens_;
  const std::shared_ptr<ShadowComparison> comparison_;
  const std::chrono::steady_clock::time_point asked_at_ = std::chrono::steady_clock::now();
  int status_ = 0;
  bool is_streamed_ = false, has_first_ = false;
};

}  // namespace systole

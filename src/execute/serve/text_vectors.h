#pragma once
// Vectors of texts by an engine: batches are made of the texts of all requests, those of one length with those of the
// same, so that little is padding.
//
// Thread safety: one thread at a time. Receivers are called within step() and must not call this.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "execute/serve/engine.h"
#include "execute/serve/text_vector.h"

namespace systole {

struct TextsRequest {
  using Vectors = std::vector<std::vector<float>>;
  std::vector<std::vector<std::int32_t>> texts;  // tokens of each; one vector each, in this order
  PoolingSpec pooling = {};
  std::function<void(Result<Vectors>)> done;  // once
  std::function<bool()> is_unwanted =
      {};                             // nobody waits any more: the rest is not computed (interrupted); absent: never
  std::function<void()> begins = {};  // a batch with texts of it is computed
};

class TextVectors {
 public:
  // The engine must outlive this, and have hidden states.
  explicit TextVectors(Engine& engine) : engine_(engine) {}

  // A text that Engine::check_prompt refuses is refused at once: `done` has its error.
  void add(TextsRequest request);
  // Computes one batch. False: nothing waits. Errors: those of the device, and invalid: weights that are not finite;
  // of one, fail_all is to follow.
  Result<bool> step();
  // Every request that waits is told this error.
  void fail_all(const Error& error);
  std::int64_t waiting() const { return static_cast<std::int64_t>(texts_.size()); }  // texts

 private:
  struct Pending {
    TextsRequest request;
    TextsRequest::Vectors vectors;
    std::size_t missing = 0;
  };
  struct Text {
    std::shared_ptr<Pending> of;
    std::size_t index = 0;
    std::span<const std::int32_t> tokens() const { return of->request.texts[index]; }
    std::int64_t length() const { return static_cast<std::int64_t>(tokens().size()); }
  };
  void drop_unwanted();
  std::vector<Text> next_batch();

  Engine& engine_;
  std::deque<Text> texts_;
};

}  // namespace systole

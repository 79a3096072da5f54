#include "execute/serve/text_vectors.h"

#include <algorithm>
#include <cmath>

namespace systole {

void TextVectors::add(TextsRequest request) {
  for (const std::vector<std::int32_t>& text : request.texts) {
    if (Status good = engine_.check_prompt(text); !good.ok()) return request.done(good.error());
  }
  const auto pending = std::make_shared<Pending>(Pending{std::move(request), {}, 0});
  pending->missing = pending->request.texts.size();
  pending->vectors.resize(pending->missing);
  if (pending->missing == 0) return pending->request.done(std::move(pending->vectors));
  for (std::size_t i = 0; i < pending->missing; ++i) texts_.push_back({pending, i});
}

void TextVectors::drop_unwanted() {
  while (!texts_.empty() && texts_.front().of->request.is_unwanted && texts_.front().of->request.is_unwanted()) {
    const std::shared_ptr<Pending> gone = texts_.front().of;
    std::erase_if(texts_, [&](const Text& text) { return text.of == gone; });
    gone->request.done(systole::error(ErrorKind::interrupted, "nobody waits for these vectors any more"));
  }
}

// The text that waits for longest, and those behind it that are padded to the same length.
std::vector<TextVectors::Text> TextVectors::next_batch() {
  const std::int64_t length = texts_.front().length();
  const auto most = static_cast<std::size_t>(engine_.hidden_rows(length));
  std::vector<Text> batch;
  std::deque<Text> rest;
  for (Text& text : texts_) {
    if (batch.size() < most && engine_.same_bucket(text.length(), length))
      batch.push_back(std::move(text));
    else
      rest.push_back(std::move(text));
  }
  texts_.swap(rest);
  return batch;
}

Result<bool> TextVectors::step() {
  drop_unwanted();
  if (texts_.empty()) return false;
  const std::vector<Text> batch = next_batch();
  std::vector<std::span<const std::int32_t>> tokens;
  for (const Text& text : batch) {
    tokens.push_back(text.tokens());
    if (text.of->request.begins) text.of->request.begins();
  }
  Result<std::vector<std::span<const float>>> states = engine_.hidden(tokens);
  for (std::size_t i = 0; states.ok() && i < batch.size(); ++i) {
    Pending& of = *batch[i].of;
    std::vector<float>& vector = of.vectors[batch[i].index];
    vector = text_vector((*states)[i], engine_.hidden_size(), of.request.pooling);
    if (!std::ranges::all_of(vector, [](float x) { return std::isfinite(x); }))
      states = error(ErrorKind::invalid, "the vector of a text is not finite").hinted("the weights are damaged");
  }
  if (!states.ok()) {  // back, so that fail_all finds their requests
    texts_.insert(texts_.begin(), batch.begin(), batch.end());
    return states.error();
  }
  for (const Text& text : batch) {
    if (--text.of->missing == 0) text.of->request.done(std::move(text.of->vectors));
  }
  return true;
}

void TextVectors::fail_all(const Error& error) {
  while (!texts_.empty()) {
    const std::shared_ptr<Pending> failed = texts_.front().of;
    std::erase_if(texts_, [&](const Text& text) { return text.of == failed; });
    failed->request.done(error);
  }
}

}  // namespace systole

#include "execute/serve/batch/batch_work.h"
#include "execute/serve/completion_form.h"
#include "execute/serve/embedding_route.h"

namespace systole {
namespace {

constexpr std::int64_t kTogether = 1024;  // texts that are batched together

class EmbeddingWork : public BatchWork {
 public:
  EmbeddingWork(const ServedApi& api, Engine& engine) : api_(api), engine_(engine), vectors_(engine) {}

  Result<RowSize> measure(BatchRequest asked) override {
    const Texts texts = TRY(texts_of(std::get<EmbeddingsRequest>(asked.asked)));
    RowSize size{sum(texts)};
    for (const std::vector<std::int32_t>& text : texts)
      size.sequences.push_back({static_cast<std::int64_t>(text.size())});
    return size;
  }

  EngineCalls calls_of(std::span<const SequenceSize> texts) const override {
    return hidden_calls(engine_.options(), texts);
  }

  bool has_room() const override { return vectors_.waiting() < kTogether; }

  Status begin(const BatchRow& row, BatchRequest asked) override {
    auto& request = std::get<EmbeddingsRequest>(asked.asked);
    TextsRequest texts{.texts = TRY(texts_of(request)), .pooling = {}, .done = {}, .is_unwanted = {}};
    texts.pooling = api_.vectors->pooling;
    texts.done = [this, row, tokens = sum(texts.texts), pooling = texts.pooling,
                  request = std::move(request)](Result<TextsRequest::Vectors> vectors) {
      if (!vectors.ok()) return ended_.push_back(refused_row(row, std::move(vectors).error()));
      shorten_all(request, pooling, *vectors);
      ended_.push_back({.row = row.index,
                        .prompt_tokens = tokens,
                        .line = answer_line(row, embeddings_text(request, *vectors, tokens))});
    };
    vectors_.add(std::move(texts));
    return {};
  }

  Result<bool> step() override { return vectors_.step(); }

 private:
  using Texts = std::vector<std::vector<std::int32_t>>;

  Result<Texts> texts_of(const EmbeddingsRequest& request) const {
    TRY(check_model(api_, request.model));
    return tokens_of_inputs(api_, request,
                            [this](std::span<const std::int32_t> tokens) { return engine_.check_prompt(tokens); });
  }

  static std::int64_t sum(const Texts& texts) {
    std::int64_t tokens = 0;
    for (const std::vector<std::int32_t>& text : texts) tokens += static_cast<std::int64_t>(text.size());
    return tokens;
  }

  const ServedApi& api_;
  Engine& engine_;
  TextVectors vectors_;
};

}  // namespace

std::unique_ptr<BatchWork> make_embedding_work(const ServedApi& api, Engine& engine) {
  return std::make_unique<EmbeddingWork>(api, engine);
}

}  // namespace systole

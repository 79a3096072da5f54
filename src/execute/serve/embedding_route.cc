#include "execute/serve/embedding_route.h"

#include <algorithm>

#include "execute/serve/request_times.h"

namespace systole {
namespace {

Error without_vectors(const ServedApi& api) {
  return error(ErrorKind::unsupported, "the model '{}' is served without vectors", api.model)
      .hinted(api.answers ? "an encoder-decoder has none; serve a language model or a bert"
                          : "serve it with --pooling mean, last or cls: how its tokens become one vector");
}

}  // namespace

Result<std::vector<std::vector<std::int32_t>>> tokens_of_inputs(const ServedApi& api, const EmbeddingsRequest& request,
                                                                const CheckPrompt& check) {
  if (!api.vectors) return without_vectors(api);
  if (request.dimensions && *request.dimensions > api.vectors->size)
    return key_error(ErrorKind::invalid, "dimensions", "{} of the vectors' {}", *request.dimensions, api.vectors->size);
  std::vector<std::vector<std::int32_t>> texts;
  for (const EmbeddingsRequest::Input& input : request.inputs) {
    const auto* text = std::get_if<std::string>(&input);
    texts.push_back(text != nullptr ? api.vectors->tokens_of(*text) : std::get<std::vector<std::int32_t>>(input));
    if (Status good = check(texts.back()); !good.ok()) {
      Error error = std::move(good).error();
      error.key = "input";
      return error;
    }
  }
  return texts;
}

void shorten_all(const EmbeddingsRequest& request, const PoolingSpec& pooling,
                 std::vector<std::vector<float>>& vectors) {
  if (!request.dimensions) return;
  for (std::vector<float>& vector : vectors) shorten(vector, *request.dimensions, pooling.normalize);
}

Status answer_embeddings(const ServedApi& api, ServingThread& serving, EmbeddingsRequest request,
                         const HttpResponder& responder, std::function<void(std::function<void()>)> later) {
  TextsRequest texts{.texts = {}, .pooling = {}, .done = {}, .is_unwanted = {}};
  texts.texts = TRY(tokens_of_inputs(
      api, request, [&](std::span<const std::int32_t> tokens) { return serving.check_prompt(tokens); }));
  texts.pooling = api.vectors->pooling;
  std::int64_t tokens = 0;
  for (const std::vector<std::int32_t>& text : texts.texts) tokens += static_cast<std::int64_t>(text.size());
  HttpRecord& record = responder.record();
  record.note("model", api.model);
  record.note("prompt_tokens", tokens);
  record.enter(name_of(SequencePart::queue));
  texts.begins = [responder] { responder.record().enter(kVectors); };
  texts.is_unwanted = [responder] { return responder.is_gone(); };
  texts.done = [responder, tokens, pooling = texts.pooling, request = std::move(request),
                later = std::move(later)](Result<TextsRequest::Vectors> vectors) {
    responder.record().enter(kTurn);
    later([=, vectors = std::move(vectors)]() mutable {
      HttpResponder to = responder;
      to.record().enter(kText);
      if (!vectors.ok()) return to.send(refusal(vectors.error()));
      shorten_all(request, pooling, *vectors);
      to.send({.body = embeddings_text(request, *vectors, tokens)});
    });
  };
  serving.embed(std::move(texts));
  return {};
}

}  // namespace systole

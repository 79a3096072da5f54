#include "execute/serve/embedding_route.h"

#include <algorithm>

namespace systole {
namespace {

Error without_vectors(const ServedApi& api) {
  return error(ErrorKind::unsupported, "the model '{}' is served without vectors", api.model)
      .hinted(api.answers ? "an encoder-decoder has none; serve a language model or a bert"
                          : "serve it with --pooling mean, last or cls: how its tokens become one vector");
}

}  // namespace

Status answer_embeddings(const ServedApi& api, ServingThread& serving, EmbeddingsRequest request,
                         const HttpResponder& responder, std::function<void(std::function<void()>)> later) {
  if (!api.vectors) return without_vectors(api);
  const ServedVectors& served = *api.vectors;
  if (request.dimensions && *request.dimensions > served.size)
    return key_error(ErrorKind::invalid, "dimensions", "{} of the vectors' {}", *request.dimensions, served.size);
  TextsRequest texts{.texts = {}, .pooling = served.pooling, .done = {}, .is_unwanted = {}};
  std::int64_t tokens = 0;
  for (const EmbeddingsRequest::Input& input : request.inputs) {
    const auto* text = std::get_if<std::string>(&input);
    texts.texts.push_back(text != nullptr ? served.tokens_of(*text) : std::get<std::vector<std::int32_t>>(input));
    if (Status good = serving.check_prompt(texts.texts.back()); !good.ok()) {
      Error error = std::move(good).error();
      error.key = "input";
      return error;
    }
    tokens += static_cast<std::int64_t>(texts.texts.back().size());
  }
  texts.is_unwanted = [responder] { return responder.is_gone(); };
  const bool normalize = served.pooling.normalize;
  texts.done = [responder, tokens, normalize, request = std::move(request),
                later = std::move(later)](Result<TextsRequest::Vectors> vectors) {
    later([=, vectors = std::move(vectors)]() mutable {
      HttpResponder to = responder;
      if (!vectors.ok()) return to.send(refusal(vectors.error()));
      if (request.dimensions) {
        for (std::vector<float>& vector : *vectors) shorten(vector, *request.dimensions, normalize);
      }
      to.send({.body = embeddings_text(request, *vectors, tokens)});
    });
  };
  serving.embed(std::move(texts));
  return {};
}

}  // namespace systole

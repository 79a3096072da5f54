#include "operate/run/embed_here.h"

#include <unistd.h>

#include <algorithm>
#include <span>

#include "execute/serve/openai_embeddings.h"
#include "execute/serve/text_vectors.h"
#include "ground/base/counted.h"
#include "ground/base/text_file.h"
#include "ground/process/signal_watch.h"
#include "ground/store/whole_file.h"

namespace systole {
namespace {

constexpr std::size_t kTogether = 8192;  // texts that are batched together, and whose vectors are held

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

class Embedding {
 public:
  Embedding(const EmbedOptions& options, const ServedModel& served, const PoolingSpec& pooling, Engine& engine)
      : options_(options),
        served_(served),
        pooling_(pooling),
        engine_(engine),
        encoder_(served.tokenizer),
        vectors_(engine) {}

  // The tokens of a line. Errors: it does not fit.
  Result<std::vector<std::int32_t>> tokens_of(std::string_view line, std::size_t number) {
    std::vector<std::int32_t> tokens = served_.tokens_of_whole(encoder_, line);
    const auto most = static_cast<std::size_t>(engine_.longest_prompt());
    const std::span<const std::int32_t> after = served_.tokenizer.after();
    if (tokens.size() > most && options_.truncate && after.size() < most) {
      tokens.resize(most - after.size());
      tokens.insert(tokens.end(), after.begin(), after.end());
      ++truncated;
    }
    if (tokens.size() > most) {
      return error(ErrorKind::invalid, "line {} has {}, the model takes {}", number,
                   counted(static_cast<std::int64_t>(tokens.size()), "token"), most)
          .coded(ErrorCode::context_length_exceeded)
          .hinted("split it, or leave the ends of long texts out with --truncate");
    }
    tokens_seen += static_cast<std::int64_t>(tokens.size());
    return tokens;
  }

  // In the order of the lines. Nothing: a signal came.
  Result<std::optional<std::string>> written(std::span<const std::string_view> lines, std::size_t first,
                                             const SignalWatch& watch, const std::function<void(std::size_t)>& told) {
    TextsRequest request{.texts = {}, .pooling = pooling_, .done = {}, .is_unwanted = {}};
    for (std::size_t i = 0; i < lines.size(); ++i) request.texts.push_back(TRY(tokens_of(lines[i], first + i + 1)));
    Result<TextsRequest::Vectors> all = TextsRequest::Vectors();
    request.done = [&](Result<TextsRequest::Vectors> vectors) { all = std::move(vectors); };
    vectors_.add(std::move(request));
    while (TRY(vectors_.step())) {
      if (watch.stop_requested()) return std::optional<std::string>();
      told(first + lines.size() - static_cast<std::size_t>(vectors_.waiting()));
    }
    TextsRequest::Vectors made = TRY(std::move(all));
    std::string text;
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (options_.dimensions > 0) shorten(made[i], options_.dimensions, pooling_.normalize);
      text += fmt::format("{{\"index\":{},\"embedding\":{}}}\n", first + i, vector_text(made[i]));
    }
    return std::optional(std::move(text));
  }

  std::int64_t tokens_seen = 0, truncated = 0;

 private:
  const EmbedOptions& options_;
  const ServedModel& served_;
  const PoolingSpec pooling_;
  Engine& engine_;
  Encoder encoder_;
  TextVectors vectors_;
};

}  // namespace

Result<EmbeddedTexts> embed_here(const EmbedOptions& options, const std::function<void(const std::string&)>& progress,
                                 const RunMessages& messages, Clock& clock) {
  const ServedModel served = TRY(find_model(options.model, messages));
  const PoolingSpec pooling = TRY(pooling_needed(served, options.pooling, !options.unnormalized));
  const std::int64_t size = served.model->hidden_size();
  if (options.dimensions > size) {
    return error(ErrorKind::invalid, "--dimensions {}, and the model's vectors have {}", options.dimensions, size)
        .hinted(fmt::format("at most {}", size));
  }
  const std::string text =
      options.in == "-" ? TRY(read_text_from(STDIN_FILENO, "standard input")) : TRY(read_text_file(options.in));
  const std::vector<std::string_view> lines = lines_of(text);
  WholeFile out(options.out, "--out vectors.jsonl");
  const Machine machine = TRY(machine_for(served, options.backend, clock));
  const EngineOptions wanted{.cache = served.context_for(options.context), .hidden = true, .generates = false};
  const std::unique_ptr<Engine> engine = TRY(open_engine(served, machine, wanted));
  Embedding embedding(options, served, pooling, *engine);
  const SignalWatch watch;
  const auto count = static_cast<std::int64_t>(lines.size());
  const Seconds began = clock.now();
  for (std::size_t first = 0; first < lines.size(); first += kTogether) {
    const auto part = std::span(lines).subspan(first, std::min(kTogether, lines.size() - first));
    const std::optional<std::string> written = TRY(embedding.written(part, first, watch, [&](std::size_t done) {
      progress(fmt::format("{} of {}", done, counted(count, "text")));
    }));
    if (!written) return EmbeddedTexts{.interrupted = true};
    out.append(*written);
  }
  out.finish();
  return EmbeddedTexts{.texts = count,
                       .tokens = embedding.tokens_seen,
                       .truncated = embedding.truncated,
                       .numbers = options.dimensions > 0 ? options.dimensions : size,
                       .pooling = pooling,
                       .took = clock.now() - began,
                       .from = served.name,
                       .step = served.step};
}

}  // namespace systole

#include "execute/serve/eval/log_likelihood.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "execute/serve/eval/text_counts.h"
#include "ground/base/counted.h"

namespace systole {

std::vector<std::size_t> window_ends(std::size_t given, std::size_t all, std::size_t most) {
  std::vector<std::size_t> ends;
  for (std::size_t done = given; done < all; ends.push_back(done))
    done = std::min(all, ends.empty() ? most + 1 : done + most);
  return ends;
}

LogLikelihood::LogLikelihood(Engine& engine, const Tokenizer& tokenizer, std::vector<std::int32_t> before)
    : engine_(engine), tokenizer_(tokenizer), before_(std::move(before)), encoder_(tokenizer) {}

LogLikelihood::Tokens LogLikelihood::tokens_of(std::string_view text) {
  Tokens tokens;
  encoder_.encode(text, tokens);
  return tokens;
}

// With pages of its own, whatever a serving loop left there.
void LogLikelihood::use_first_slot() {
  std::vector<std::int32_t> pages(static_cast<std::size_t>(paged_cache(engine_.options()).entries));
  std::iota(pages.begin(), pages.end(), 0);
  engine_.set_table(0, pages);
}

// The first `length` tokens are in the slot.
Result<double> LogLikelihood::sum_after(std::int64_t length, std::span<const std::int32_t> tokens,
                                        std::span<const std::int32_t> next) {
  engine_.begin(0, length);
  const std::span<const float> scores = TRY(engine_.score(0, tokens, next));
  double sum = 0;
  for (std::size_t i = 0; i < next.size(); ++i) sum += next[i] < 0 ? 0 : static_cast<double>(scores[i]);
  if (std::isfinite(sum)) return sum;
  return error(ErrorKind::invalid, "the log likelihood of a text is not finite").hinted("the weights are damaged");
}

Result<std::vector<LogLikelihood::Score>> LogLikelihood::of_continuations(std::string_view context,
                                                                          std::span<const std::string> texts) {
  use_first_slot();
  const std::string_view bare = without_space_behind(context), behind = context.substr(bare.size());
  Tokens asked = tokens_of(bare);
  const std::size_t own = asked.size();  // of the context itself
  asked.insert(asked.begin(), before_.begin(), before_.end());
  if (asked.empty()) asked.push_back(tokenizer_.bos());
  const auto most = static_cast<std::size_t>(engine_.cache());
  std::size_t held = 0;  // so many tokens of `asked` are in the slot
  std::vector<Score> scores;
  for (const std::string& text : texts) {
    const Tokens whole = tokens_of(std::string(bare) + std::string(behind) + text);
    const Tokens wanted(whole.begin() + static_cast<std::ptrdiff_t>(std::min(own, whole.size())), whole.end());
    if (wanted.empty() || wanted.size() > most) {
      return error(ErrorKind::does_not_fit, "text {} has {} of its own behind its context, and 1 to {} can be scored",
                   &text - texts.data(), counted(wanted.size(), "token"), most)
          .hinted("leave the item out, or ask for more --context");
    }
    Tokens all = asked;
    all.insert(all.end(), wanted.begin(), wanted.end() - 1);
    const std::size_t cut = all.size() > most ? all.size() - most : 0;
    std::size_t first = 0;  // the token after which `held` ones follow
    if (cut == 0 && held == 0 && asked.size() > 1) {
      const Tokens nothing(asked.size() - 1, -1);
      TRY(sum_after(0, std::span(asked).first(asked.size() - 1), nothing));
      held = asked.size() - 1;
    }
    if (cut == 0) first = held;
    if (cut > 0) held = 0;  // the slot has another beginning now
    const auto input = std::span(all).subspan(cut + first);
    Tokens next(input.size(), -1);
    std::copy(wanted.begin(), wanted.end(), next.end() - static_cast<std::ptrdiff_t>(wanted.size()));
    scores.push_back({TRY(sum_after(static_cast<std::int64_t>(first), input, next)),
                      static_cast<std::int64_t>(wanted.size()), cut > 0});
  }
  return scores;
}

Result<LogLikelihood::Score> LogLikelihood::of_text(std::string_view text, const std::function<bool()>& wanted) {
  use_first_slot();
  Tokens all = before_;
  if (all.empty()) all.push_back(tokenizer_.bos());
  std::size_t done = all.size();  // the first token that is not scored yet
  const Tokens own = tokens_of(text);
  all.insert(all.end(), own.begin(), own.end());
  const auto most = static_cast<std::size_t>(engine_.cache());
  CHECK(done <= most, "{} tokens before a text in a context of {}", done, most);
  Score score{0, static_cast<std::int64_t>(own.size()), false};
  for (const std::size_t end : window_ends(done, all.size(), most)) {
    if (wanted && !wanted()) return error(ErrorKind::interrupted, "the evaluation was interrupted");
    const std::size_t begin = end - 1 > most ? end - 1 - most : 0;
    Tokens next(end - 1 - begin, -1);
    for (std::size_t i = done; i < end; ++i) next[i - 1 - begin] = all[i];
    score.value += TRY(sum_after(0, std::span(all).subspan(begin, next.size()), next));
    done = end;
  }
  return score;
}

}  // namespace systole

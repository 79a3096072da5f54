#include "execute/serve/generate.h"

namespace systole {

Result<std::vector<Generated>> generate(Engine& engine, std::span<const std::vector<std::int32_t>> prompts,
                                        const GenerateOptions& options, const OnToken& on_token) {
  TRY(check(options.sampling));
  if (options.max_tokens < 0)
    return error(ErrorKind::invalid, "max_tokens is {}, must not be negative", options.max_tokens);
  std::vector<Generated> results(prompts.size());
  if (options.max_tokens == 0) return results;
  bool goes_on = true;
  ServingLoop loop(engine, {.waiting = static_cast<std::int64_t>(prompts.size()), .drafts = options.drafts});
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    results[i].end = SequenceEnd::asked;
    Status added = loop.add({.id = i,
                             .prompt = prompts[i],
                             .sampling = options.sampling,
                             .draw = i,
                             .max_tokens = options.max_tokens,
                             .min_tokens = options.min_tokens,
                             .stop = options.stop},
                            {.token =
                                 [&, i](std::int32_t token) {
                                   if (!goes_on) return false;
                                   results[i].tokens.push_back(token);
                                   goes_on = !on_token || on_token(i, token);
                                   return goes_on;
                                 },
                             .end = [&, i](SequenceEnd end) { results[i].end = end; }});
    if (!added.ok()) {
      Error error = std::move(added).error();
      error.message = fmt::format("prompt {}: {}", i + 1, error.message);
      return error;
    }
  }
  while (goes_on && TRY(loop.step())) {}
  return results;
}

}  // namespace systole

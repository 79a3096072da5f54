#include "operate/import/loader.h"

#include <algorithm>
#include <optional>

#include "ground/base/number_from.h"

namespace systole {
namespace {

struct Spelling {
  const char* key;
  std::int64_t most;                              // that the key takes
  std::initializer_list<std::string_view> names;  // '-' for '-' and '_'
};
// As in examples of torchvision, timm, transformers and lightning.
const Spelling kSpellings[] = {
    {"resources.loader.workers", 4096, {"num-workers", "workers", "dataloader-num-workers", "dataloader-workers"}},
    {"resources.loader.batch_size",
     1'000'000'000,
     {"batch-size", "per-device-train-batch-size", "micro-batch-size", "train-batch-size"}},
    {"resources.loader.prefetch", 1000, {"prefetch-factor", "dataloader-prefetch-factor"}}};

// The value of the last flag of one of these names, as a program would take it. Nothing: none is there, or no number.
std::optional<Said<std::int64_t>> number_of(const Spelling& spelling, std::span<const ShellWord> words) {
  std::optional<Said<std::int64_t>> found;
  for (std::size_t w = 0; w < words.size(); ++w) {
    const std::string_view text = words[w].text;
    if (!text.starts_with("--")) continue;
    const std::size_t equals = text.find('=');
    std::string name(text.substr(2, equals == text.npos ? text.npos : equals - 2));
    std::ranges::replace(name, '_', '-');
    if (std::ranges::find(spelling.names, name) == spelling.names.end()) continue;
    const bool behind = equals == text.npos;
    if (behind && w + 1 == words.size()) continue;
    const std::string value(behind ? std::string_view(words[w + 1].text) : text.substr(equals + 1));
    found.reset();
    if (const std::optional<std::int64_t> number = number_from(value);
        number && *number > 0 && *number <= spelling.most)
      found = {*number, behind ? words[w].raw + " " + words[w + 1].raw : words[w].raw};
  }
  return found;
}

}  // namespace

void read_loader(std::span<const ShellWord> words, Draft& draft) {
  if (draft.begun() || !number_of(kSpellings[0], words)) return;
  for (const Spelling& spelling : kSpellings)
    if (const auto number = number_of(spelling, words)) draft.propose(spelling.key, number->value, number->from);
  draft.note("resources.loader",
             "/dev/shm of a pod is sized by it, once resources.loader.sample says a sample's bytes");
}

}  // namespace systole

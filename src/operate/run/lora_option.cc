#include "operate/run/lora_option.h"

#include <algorithm>

namespace systole {
namespace {

struct Word {
  std::string name, path;
};

Result<std::vector<Word>> parsed(std::span<const std::string> words, const std::string& model) {
  std::vector<Word> all;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size()) {
      return error(ErrorKind::invalid, "--lora: '{}' is not NAME=PATH", word)
          .hinted("--lora NAME=PATH: what requests call it, and its folder in PEFT's format");
    }
    const std::string name = word.substr(0, equals);
    if (name == model || std::ranges::find(all, name, &Word::name) != all.end()) {
      return error(ErrorKind::invalid, "--lora: there are two models '{}'", name)
          .hinted("give each adapter a name of its own; --name is that of the model");
    }
    all.push_back({name, word.substr(equals + 1)});
  }
  return all;
}

// Of a rank's adapter, read from its path. What rank 0 prints of it is the message alone.
Error of_adapter(const Word& word, Error why) {
  const std::string file = why.where.file.empty() ? word.path : why.where.file;
  why.message = fmt::format("adapter '{}' ({}): {}", word.name, file, why.message);
  return why;
}

Error differs(const std::string& name, const std::string& how) {
  return error(ErrorKind::invalid, "its adapter '{}' {}", name, how)
      .hinted("copy the folder of the adapter that rank 0 serves to each machine");
}

Status check_same(const Word& word, const LoraAdapter& adapter, const RankedAdapter& of_rank_0) {
  if (adapter.rank() != of_rank_0.rank)
    return differs(word.name, fmt::format("has rank {}, rank 0's has {}", adapter.rank(), of_rank_0.rank));
  if (hash_of(adapter) != of_rank_0.hash) return differs(word.name, "has other numbers than rank 0's");
  return {};
}

}  // namespace

Result<NamedAdapters> read_adapters(std::span<const std::string> words, const ModelSpec& spec,
                                    const std::string& model) {
  NamedAdapters adapters;
  for (const Word& word : TRY(parsed(words, model))) {
    adapters.all.push_back(TRY(read_lora_adapter(word.path, spec)));
    adapters.names.push_back(word.name);
  }
  return adapters;
}

std::vector<RankedAdapter> ranked_adapters(const NamedAdapters& adapters) {
  std::vector<RankedAdapter> ranked;
  for (std::size_t i = 0; i < adapters.all.size(); ++i)
    ranked.push_back({adapters.names[i], adapters.all[i].rank(), hash_of(adapters.all[i])});
  return ranked;
}

Result<NamedAdapters> adapters_of_rank(std::span<const std::string> words, const ModelSpec& spec,
                                       std::span<const RankedAdapter> ranked) {
  const std::vector<Word> own = TRY(parsed(words, ""));
  for (const Word& word : own) {
    if (std::ranges::find(ranked, word.name, &RankedAdapter::name) != ranked.end()) continue;
    return error(ErrorKind::invalid, "it has an adapter '{}', which rank 0 does not serve", word.name)
        .hinted("the same --lora on every machine");
  }
  NamedAdapters adapters;
  for (const RankedAdapter& of_rank_0 : ranked) {
    const auto word = std::ranges::find(own, of_rank_0.name, &Word::name);
    if (word == own.end()) {
      return error(ErrorKind::invalid, "it has no adapter '{}', which rank 0 serves", of_rank_0.name)
          .hinted(fmt::format("the same --lora on every machine: --lora {}=PATH", of_rank_0.name));
    }
    Result<LoraAdapter> read = read_lora_adapter(word->path, spec);
    if (!read.ok()) return of_adapter(*word, std::move(read).error());
    TRY(check_same(*word, *read, of_rank_0));
    adapters.all.push_back(std::move(*read));
    adapters.names.push_back(word->name);
  }
  return adapters;
}

}  // namespace systole

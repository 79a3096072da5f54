#pragma once
// For tests: saves of the tiny state by the ranks of a mesh, interleaved by Turns (turns.h), and checks of their
// folder.

#include <gtest/gtest.h>

#include <set>

#include "execute/checkpoint/testing/tiny_ranks.h"
#include "execute/checkpoint/testing/turns.h"

namespace systole::checkpoint {

inline SaveOptions group_options(int rank, int world, Clock& clock, std::int64_t generation = 1,
                                 const std::string& launch = "a") {
  SaveOptions options = tiny_options();
  options.group = {rank, world, launch, generation, &clock, Seconds(10), Seconds(0.05)};
  return options;
}

// The result of a save on each rank; nothing for one that died.
using Endings = std::vector<std::optional<Result<SaveReport>>>;

// Starts a save by all ranks; `change` may modify a rank's request or options. REQUIRES: the arguments live until
// turns.run() returns.
inline void start_group_save(Turns& turns, const TinyRanks& ranks, Endings& endings, std::int64_t generation = 1,
                             const std::function<void(int, SaveRequest&, SaveOptions&)>& change = {},
                             const std::string& dir = "c") {
  endings.clear();
  endings.resize(static_cast<std::size_t>(ranks.ranks()));
  turns.start(ranks.ranks(), [&ranks, &endings, generation, change, dir](int rank, Store& store, Clock& clock) {
    SaveRequest request = ranks.request(rank);
    SaveOptions options = group_options(rank, ranks.ranks(), clock, generation);
    if (change) change(rank, request, options);
    auto ended = save(Folder{objects_in(store), dir}, request, options);
    endings[static_cast<std::size_t>(rank)].emplace(std::move(ended));
  });
}

inline Endings group_save(Store& store, const TinyRanks& ranks, std::uint64_t seed = 1, std::int64_t generation = 1,
                          const std::function<void(int, SaveRequest&, SaveOptions&)>& change = {},
                          const std::string& dir = "c") {
  Endings endings;
  Turns turns(store, seed);
  start_group_save(turns, ranks, endings, generation, change, dir);
  turns.run();
  return endings;
}

inline std::string text_of(const std::optional<Result<SaveReport>>& ending) {
  return !ending ? "died" : *ending ? "saved" : to_string(ending->error());
}

// Files of the folder that no checkpoint needs, except for the claim and the outcome of the last save.
inline std::set<std::string> files_too_many(Store& store, const std::string& dir = "c") {
  const Folder folder{objects_in(store), dir};
  std::set<std::string> names;
  const std::vector<std::string> chunks = list_or_empty(store, folder.chunks()).value();
  names.insert(chunks.begin(), chunks.end());
  const std::vector<std::int64_t> steps = list_steps(folder).value();
  for (std::int64_t step : steps) {
    const Manifest manifest = load_manifest(folder, step).value();
    for (const ChunkFile& chunk : manifest.chunks) names.erase(chunk.hash);
  }
  for (const std::string& name : list_or_empty(store, folder.manifests()).value()) {
    if (name.ends_with(kTemporary)) names.insert(name);
  }
  std::vector<std::string> saves = list_or_empty(store, folder.parts()).value();
  std::erase_if(saves, [](const std::string& name) { return !name.ends_with('/') && !name.ends_with(kTemporary); });
  for (const std::string& one : saves) {
    const std::vector<std::string> files =
        list_or_empty(store, folder.parts() + "/" + one.substr(0, one.size() - 1)).value();
    for (const std::string& file : files) {
      if (saves.size() > 1 || file != "outcome.json") names.insert(one + file);
    }
  }
  return names;
}

}  // namespace systole::checkpoint

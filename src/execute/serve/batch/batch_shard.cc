#include "execute/serve/batch/batch_shard.h"

#include <map>
#include <optional>

#include "ground/base/number_from.h"

namespace systole {
namespace {

constexpr std::string_view kOf = "-of-";

// "answers" and ".jsonl".
std::pair<std::string_view, std::string_view> parts_of(std::string_view file) {
  const std::size_t dot = file.rfind('.');
  if (dot == file.npos || dot == 0) return {file, {}};
  return {file.substr(0, dot), file.substr(dot)};
}

// Numbers as they are written, which need be no shard. Nothing: the name has another form.
std::optional<BatchShard> shard_of(std::string_view file, std::string_view output) {
  const auto [stem, extension] = parts_of(output);
  const std::size_t around = stem.size() + 1 + extension.size();
  if (file.size() <= around || !file.starts_with(stem) || file[stem.size()] != '.' || !file.ends_with(extension))
    return std::nullopt;
  const std::string_view numbers = file.substr(stem.size() + 1, file.size() - around);
  const std::size_t of = numbers.find(kOf);
  if (of == numbers.npos) return std::nullopt;
  const auto index = number_from<std::size_t>(numbers.substr(0, of));
  const auto count = number_from<std::size_t>(numbers.substr(of + kOf.size()));
  if (!index || !count) return std::nullopt;
  return BatchShard{*index, *count};
}

}  // namespace

Result<BatchShard> parse_batch_shard(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash != text.npos) {
    const auto index = number_from<std::size_t>(text.substr(0, slash));
    const auto count = number_from<std::size_t>(text.substr(slash + 1));
    if (index && count && *index < *count && *count <= kMostShards) return BatchShard{*index, *count};
  }
  return error(ErrorKind::invalid, "--shard: '{}' is no shard: I/N, I from 0 to N - 1, N at most {}", text, kMostShards)
      .hinted("--shard 0/3 is the first of three");
}

std::string to_string(const BatchShard& shard) { return fmt::format("{}/{}", shard.index, shard.count); }

std::string shard_file(const std::string& output, const BatchShard& shard) {
  const auto [stem, extension] = parts_of(output);
  return fmt::format("{}.{}{}{}{}", stem, shard.index, kOf, shard.count, extension);
}

Result<std::size_t> find_shards(Store& store, const std::string& output) {
  std::map<std::size_t, std::string> found;  // a file of each number of shards
  for (const std::string& file : TRY(store.list(""))) {
    const std::optional<BatchShard> shard = shard_of(file, output);
    if (!shard) continue;
    if (shard->index >= shard->count || shard->count > kMostShards || shard_file(output, *shard) != file) {
      return error(ErrorKind::invalid, "'{}' is named as a shard of '{}', and is none", file, output)
          .hinted("move it away");
    }
    found.emplace(shard->count, file);
  }
  if (found.empty()) {
    return error(ErrorKind::not_found, "there is no shard of '{}', as '{}'", output,
                 shard_file(output, {.index = 0, .count = 2}))
        .hinted("compute the shards first: --shard 0/2 and --shard 1/2");
  }
  if (found.size() > 1) {
    return error(ErrorKind::invalid, "'{}' and '{}' are shards of two different jobs", found.begin()->second,
                 found.rbegin()->second)
        .hinted("move those of one away");
  }
  return found.begin()->first;
}

Status join_shard(const BatchOutput& file, const BatchShard& shard, std::size_t rows, const BatchTotals& totals,
                  BatchJournal& whole) {
  const auto changed = [&](std::size_t line) {
    const std::string& shown = file.path.empty() ? file.name : file.path;
    return error(ErrorKind::corrupt, "line {} of '{}' is not that of row {}: the file has changed", line + 1, shown,
                 shard.row(line))
        .hinted("move the file and its .journal away, and compute the shard again");
  };
  const std::size_t own = shard.rows(rows);
  std::size_t place = 0;
  const std::int64_t size = TRY(file.store.size(file.name)).count();
  const bool is_torn =
      TRY(for_each_line(file.store, file.name, size, [&](std::string_view line, std::int64_t) -> Status {
        const std::size_t row = shard.row(place);
        if (place == own || !line.starts_with(fmt::format(R"({{"index":{},"custom_id":)", row))) return changed(place);
        const bool is_first = place++ == 0;
        if (whole.has(row)) return {};
        // A line does not say how many tokens are its row's: the first one of the shard has them all.
        return whole.append({.row = row,
                             .prompt_tokens = is_first ? totals.prompt_tokens : 0,
                             .answer_tokens = is_first ? totals.answer_tokens : 0,
                             .failed = !line.ends_with(R"("error":null})"),
                             .line = std::string(line)});
      }));
  if (is_torn || place != own) return changed(place);
  return {};
}

}  // namespace systole

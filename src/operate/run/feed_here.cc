#include "operate/run/feed_here.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "ground/base/counted.h"
#include "ground/base/document.h"
#include "ground/base/files.h"
#include "ground/base/hash.h"
#include "ground/base/number_from.h"
#include "ground/catalog/catalog.h"
#include "ground/process/machine.h"
#include "ground/store/store.h"
#include "operate/run/built_data.h"

namespace systole {
namespace {

constexpr std::string_view kEntry = "this-machine-feed-";

std::string folder_of(const Workload& workload) {
  const Result<std::string> path = absolute_path(workload.data.folder);
  return path.ok() ? *path : workload.data.folder;
}

// What the rates depend on: the text, the folder of its shards, and the shape and making of a row.
std::string entry_of(const Workload& workload) {
  const DataSpec& data = workload.data;
  std::string text = fmt::format("{} {} {} {} {} {} {}\n", folder_of(workload), workload.model.context(),
                                 workload.model.target_context(), data.packing, static_cast<int>(data.tokenizer.kind),
                                 data.tokenizer.vocabulary, data.tokenizer.file);
  for (const std::string& file : data.train.files) text += file + "\n";
  if (data.buckets) text += to_hex(packing_rule(data).asked());
  return std::string(kEntry) + to_hex(hash128(text)).substr(0, 16);
}

std::string machine_of(const Workload& workload) {
  return fmt::format("{}, {}; {}", processor_name(), counted(allowed_cores(), "core"), folder_of(workload));
}

std::string catalog_folder() { return user_catalog_folder(std::getenv("XDG_CONFIG_HOME"), std::getenv("HOME")); }

class EntryText {
 public:
  EntryText(const Workload& workload, std::string date) : date_(std::move(date)) {
    text_ = fmt::format(
        "# Written by `systole data probe --save`; holds for this machine and this folder.\nsystole_catalog: 1\n"
        "entries:\n  {}:\n    kind: feed\n    doc: {}\n    facts:\n",
        entry_of(workload), to_json(Node(machine_of(workload))));
  }
  void add(const std::string& key, const std::string& value, const std::string& how) {
    text_ += fmt::format("      {}: {{ value: {}, source: \"{}\", date: {} }}\n", key, value, how, date_);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_, date_;
};

void add_shards(const ShardProbe& shards, const char* how, EntryText& entry) {
  for (const ReaderProbe& rate : shards.readers)
    entry.add(fmt::format("rows.{}.{}", rate.cold ? "cold" : "warm", rate.readers),
              fmt::format("{:.6g} /s", rate.rows_per_second), how);
  const FeedSpeed speed = speed_of(shards, "");
  entry.add("row.processor", fmt::format("{:.4g} us", speed.processor.count() * 1e6), how);
  entry.add("hiccup", fmt::format("{:.4g} us", speed.hiccup.count() * 1e6), how);
  entry.add("shards.read", fmt::format("{:.4g} MB/s", shards.read.count() * 1e-6),
            shards.cold ? "shards in order, pages dropped" : "shards in order, from the cache");
}

// Of all kinds, weighted by their bytes.
void add_sources(const std::vector<SourceProbe>& sources, EntryText& entry) {
  std::map<std::string, double> seconds;
  double bytes = 0;
  for (const SourceProbe& source : sources) {
    const auto size = static_cast<double>(source.size.count());
    bytes += size;
    for (const auto& [stage, time] : source.stages) seconds[stage] += size * time.count();
  }
  for (const auto& [stage, time] : seconds)
    if (time > 0)
      entry.add("prepare." + stage, fmt::format("{:.4g} MB/s", bytes / time * 1e-6), "bytes of text, one thread");
}

}  // namespace

FeedSpeed speed_of(const ShardProbe& probe, std::string source) {
  FeedSpeed speed;
  speed.source = std::move(source);
  for (const ReaderProbe& rate : probe.readers) {
    speed.rates.push_back({rate.readers, rate.rows_per_second, rate.cold});
    if (rate.readers > 1) continue;
    speed.processor = std::max(speed.processor, rate.processor);
    const double batch = static_cast<double>(probe.batch_rows) / rate.rows_per_second;
    speed.hiccup = std::max(speed.hiccup, rate.longest - Seconds(batch));
  }
  return speed;
}

Result<std::string> save_feed(const Workload& workload, const FeedMeasured& measured, Clock& clock) {
  const std::string folder = catalog_folder();
  if (folder.empty()) {
    return error(ErrorKind::not_found,
                 "there is no place for the user's catalog: neither XDG_CONFIG_HOME nor HOME is set")
        .hinted("set HOME, or leave --save out");
  }
  TRY(make_folders(folder));
  EntryText entry(workload, clock.timestamp().substr(0, 10));
  const char* how = measured.held_up ? "the reader of rows, held up by --inject" : "the reader of rows";
  if (measured.shards) add_shards(*measured.shards, how, entry);
  add_sources(measured.sources, entry);
  const std::unique_ptr<Store> store = TRY(open_posix_store(folder));
  const std::string file = entry_of(workload) + ".yaml";
  TRY(write_whole(*store, file, entry.text()));
  return folder + "/" + file;
}

Result<std::optional<FeedSpeed>> read_feed(const Workload& workload) {
  const std::string folder = catalog_folder(), name = entry_of(workload), path = folder + "/" + name + ".yaml";
  if (folder.empty() || !path_exists(path)) return std::optional<FeedSpeed>();
  const std::unique_ptr<Store> store = TRY(open_posix_store(folder));
  const std::vector<CatalogFile> files{{path, TRY(read_text(*store, name + ".yaml"))}};
  const Catalog catalog = TRY(Catalog::read(files));
  const CatalogEntry& entry = *TRY(catalog.find(name));
  if (entry.doc != machine_of(workload)) {
    return error(ErrorKind::invalid, "the probe of {} is of '{}', this is '{}'", entry.date(), entry.doc,
                 machine_of(workload));
  }
  FeedSpeed speed;
  speed.source = "systole data probe of " + entry.date();
  for (const auto& [key, fact] : entry.facts) {
    if (fact.source.find("--inject") != std::string::npos && speed.source.find("held up") == std::string::npos)
      speed.source += ", held up by --inject";
    for (const bool cold : {true, false}) {
      const std::string_view prefix = cold ? "rows.cold." : "rows.warm.";
      if (!key.starts_with(prefix)) continue;
      const auto readers = number_from(std::string_view(key).substr(prefix.size()));
      const double rate = TRY(entry.per_second(key));
      if (readers && rate > 0) speed.rates.push_back({*readers, rate, cold});
    }
  }
  if (speed.rates.empty()) return std::optional<FeedSpeed>();  // probed before the data was built
  speed.processor = TRY(entry.seconds("row.processor"));
  speed.hiccup = TRY(entry.seconds("hiccup"));
  return std::optional(std::move(speed));
}

PlannedFeed feed_here(const Workload& workload, const Dataset& dataset, const EpochRows& epoch,
                      std::optional<Seconds> step) {
  const PackedTokens& rows = *dataset.train;
  FeedNeed need;
  need.rows = workload.train.batch;
  Bytes size;
  for (const TokenShard& shard : rows.shards) size += Bytes(shard.info().tokens * shard.token_bytes());
  const auto all = static_cast<double>(rows.packing.rows());
  need.row_bytes = all > 0 ? static_cast<double>(size.count()) / all : 0;
  need.step = step;
  need.epoch_steps = all / static_cast<double>(std::max<std::int64_t>(1, workload.train.batch));
  if (workload.data.buckets) {  // steps of short rows have more of them
    need.rows = epoch.step_rows();
    need.epoch_steps = epoch.steps;
  }
  const TrainSpec& train = workload.train;
  if (train.steps) need.steps = static_cast<double>(*train.steps);
  if (train.tokens && rows.packing.tokens > 0)
    need.steps = static_cast<double>(*train.tokens) / static_cast<double>(rows.packing.tokens) * need.epoch_steps;
  const Bytes free =
      available_memory() - workload.data.cache_memory.value_or(Bytes());  // objects in memory take theirs
  need.stays_in_memory = size < Bytes(free.count() / 2);
  need.readers = workload.data.readers;
  need.queue = workload.data.queue;
  if (!workload.data.mixture.sources.empty()) {
    PlannedFeed feed = plan_feed(need, std::nullopt);
    feed.unknown = "not measured: a mixture is read source by source";
    return feed;
  }
  const Result<std::optional<FeedSpeed>> speed = read_feed(workload);
  if (speed.ok()) return plan_feed(need, *speed);
  PlannedFeed feed = plan_feed(need, std::nullopt);
  feed.unknown = speed.error().message + ": systole data probe --save measures it";
  return feed;
}

}  // namespace systole

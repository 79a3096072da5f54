#include "execute/serve/batch/shared_batch.h"

#include <algorithm>

#include "ground/base/document.h"
#include "ground/base/shell_quoted.h"

namespace systole {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kRows = 64, kLeast = 16, kMost = 256;

std::string folder_of(const SharedBatch& batch) { return batch.output.name + ".shards"; }
std::string job_file(const SharedBatch& batch) { return folder_of(batch) + "/job"; }
std::string shown(const SharedBatch& batch) {
  return batch.output.path.empty() ? batch.output.name : batch.output.path;
}

BatchOutput output_of(const SharedBatch& batch, const BatchShard& shard) {
  const std::string& name = batch.output.name;
  const std::string file = shard_file(name.substr(name.rfind('/') + 1), shard);
  return {batch.output.store, folder_of(batch) + "/" + file, shown(batch) + ".shards/" + file};
}

// What the file `job` says.
struct Entered {
  std::size_t shards = 0;
  std::int64_t began = 0;
};

Result<Entered> read_job(const SharedBatch& batch) {
  const BatchFacts facts = batch.facts({});
  const Node node = TRY(parse_json(TRY(read_text(batch.output.store, job_file(batch))), job_file(batch)));
  std::string differs;
  for (const auto& [key, mine] :
       {std::pair("model", &facts.model), {"input", &facts.input}, {"options", &facts.options}})
    if (differs.empty() && node.text_at(key) != *mine) differs = key;
  if (!differs.empty() || node.text_at("systole_shards") != std::to_string(kVersion)) {
    return error(ErrorKind::exists, "shards of '{}' are there, of another job: its {}", shown(batch),
                 differs.empty()        ? "program was another"
                 : differs == "options" ? "options were others"
                                        : differs + " was another")
        .hinted(fmt::format("name another output; or, if no process computes them and they may go: rm -rf {}",
                            shell_word(shown(batch) + ".shards")));
  }
  const auto shards = TRY(TRY(node.get("shards"))->as_int(1, kMostShards));
  return Entered{static_cast<std::size_t>(shards), TRY(TRY(node.get("began"))->as_int())};
}

// Nothing: another process is about to write it, or has just removed it with all shards.
Result<std::optional<Entered>> enter(const SharedBatch& batch) {
  Store& store = batch.output.store;
  const auto tried = [&]() -> Result<Entered> {
    if (TRY(store.exists(job_file(batch)))) return read_job(batch);
    TRY(make_dirs_synced(store, folder_of(batch)));
    const std::unique_ptr<FileLock> lock = TRY(store.try_lock(folder_of(batch)));
    if (TRY(store.exists(job_file(batch)))) return read_job(batch);
    const BatchFacts facts = batch.facts({});
    const Node job = Node::map({{"systole_shards", kVersion},
                                {"shards", shards_for(batch.shards, batch.rows)},
                                {"began", batch.now},
                                {"model", facts.model},
                                {"input", facts.input},
                                {"options", facts.options}});
    TRY(write_whole(store, job_file(batch), to_json(job) + "\n"));
    return read_job(batch);
  };
  Result<Entered> entered = tried();
  if (entered.ok()) return std::optional(*entered);
  if (entered.error().kind == ErrorKind::busy || entered.error().kind == ErrorKind::not_found)
    return std::optional<Entered>();
  return std::move(entered).error();
}

// Null: another process has it.
Result<std::unique_ptr<BatchJournal>> open_free(const BatchOutput& output, const BatchFacts& facts, std::int64_t now) {
  Result<std::unique_ptr<BatchJournal>> journal = BatchJournal::open(output, facts, now);
  if (!journal.ok() && journal.error().kind == ErrorKind::busy) return std::unique_ptr<BatchJournal>();
  return journal;
}

// As far as no other process makes new files there at this moment: then those stay until the job is run again.
void remove_shards(Store& store, const std::string& folder) {
  if (const Result<std::vector<std::string>> names = store.list(folder); names.ok()) {
    for (const std::string& name : *names) {
      const std::string path = folder + "/" + name;
      if (name.ends_with('/'))
        remove_shards(store, path.substr(0, path.size() - 1));
      else if (!store.remove(path).ok())
        return;
    }
  }
  (void)store.remove(folder).ok();
}

class Worker {
 public:
  explicit Worker(const SharedBatch& batch) : batch_(batch) {}

  Result<SharedBatchEnd> run() {
    while (!TRY(is_there())) {
      const Result<std::optional<Entered>> tried = enter(batch_);
      if (!tried.ok() && TRY(is_there())) break;
      const std::optional<Entered> entered = TRY(tried);
      if (!entered && !batch_.wait(0)) return end_;
      if (!entered) continue;
      began_ = entered->began;
      end_.shards = entered->shards;
      totals_.assign(end_.shards, std::nullopt);
      if (!TRY(compute())) return end_;
      break;
    }
    for (;;) {
      const auto whole = TRY(open_free(batch_.output, batch_.facts({}), began_));
      if (whole == nullptr) {
        if (!batch_.wait(0)) return end_;
        continue;
      }
      if (!whole->is_finished()) {
        TRY(join(*whole));
      } else if (batch_.seal) {
        TRY(batch_.seal(false));
      }
      end_.is_finished = true;
      end_.totals = whole->totals();
      remove_shards(batch_.output.store, folder_of(batch_));
      return end_;
    }
  }

 private:
  Result<bool> is_there() const { return batch_.output.store.exists(batch_.output.name); }
  std::size_t left() const {
    return static_cast<std::size_t>(
        std::ranges::count(totals_, false, [](const auto& totals) { return totals.has_value(); }));
  }

  // Until all shards are finished, or the output is there. False: asked to stop.
  Result<bool> compute() {
    while (left() > 0) {
      const std::size_t before = left();
      for (std::size_t i = 0; i < totals_.size(); ++i) {
        if (totals_[i]) continue;
        if (TRY(is_there())) return true;
        const Result<bool> goes_on = take({i, totals_.size()});
        // Others may have joined the shards and removed this one meanwhile.
        if (!goes_on.ok() && TRY(is_there())) return true;
        if (!TRY(goes_on)) return false;
      }
      if (left() == before && !batch_.wait(left())) return false;
    }
    return true;
  }

  // False: asked to stop.
  Result<bool> take(const BatchShard& shard) {
    const auto journal = TRY(open_free(output_of(batch_, shard), batch_.facts(shard), began_));
    if (journal == nullptr) return true;
    if (!journal->is_finished()) {
      if (TRY(is_there())) return true;  // they were joined meanwhile, and this journal is begun anew
      if (!TRY(batch_.compute(shard, *journal, began_))) return false;
      TRY(journal->finish());
      ++end_.computed;
    }
    totals_[shard.index] = journal->totals();
    return true;
  }

  Status join(BatchJournal& whole) {
    for (std::size_t i = 0; i < totals_.size(); ++i) {
      if (whole.totals().rows == static_cast<std::int64_t>(batch_.rows)) break;
      CHECK(totals_[i], "shard {} is not finished", i);
      const BatchShard shard{i, totals_.size()};
      TRY(join_shard(output_of(batch_, shard), shard, batch_.rows, *totals_[i], whole));
    }
    TRY(whole.finish(batch_.seal ? [this] { return batch_.seal(true); } : std::function<Status()>()));
    end_.is_joined = true;
    return {};
  }

  const SharedBatch& batch_;
  std::int64_t began_ = batch_.now;
  std::vector<std::optional<BatchTotals>> totals_;  // of finished shards
  SharedBatchEnd end_;
};

}  // namespace

std::size_t shards_for(std::int64_t asked, std::size_t rows) {
  const std::size_t wanted = asked > 0 ? static_cast<std::size_t>(asked) : std::clamp(rows / kRows, kLeast, kMost);
  return std::clamp<std::size_t>(wanted, 1, std::max<std::size_t>(rows, 1));
}

Result<SharedBatchEnd> run_shared(const SharedBatch& batch) { return Worker(batch).run(); }

Status count_shards(const SharedBatch& batch, BatchJournal& whole) {
  if (whole.is_finished() || !TRY(batch.output.store.exists(job_file(batch)))) return {};
  const Entered job = TRY(read_job(batch));
  for (std::size_t i = 0; i < job.shards; ++i) {
    const BatchShard shard{i, job.shards};
    const BatchOutput there = output_of(batch, shard);
    const std::unique_ptr<Store> copy = TRY(copy_for_reading(there));
    const auto journal = TRY(BatchJournal::open({*copy, there.name, there.path}, batch.facts(shard), job.began));
    for (std::size_t place = 0; place < shard.rows(batch.rows); ++place) {
      const std::size_t row = shard.row(place);
      if (journal->has(place) && !whole.has(row)) TRY(whole.append({.row = row, .line = "-"}));
    }
  }
  return {};
}

}  // namespace systole

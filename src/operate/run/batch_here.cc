#include "operate/run/batch_here.h"

#include <algorithm>
#include <filesystem>

#include "execute/serve/batch/carried_columns.h"
#include "execute/serve/batch/result_table.h"
#include "execute/serve/batch/vector_array.h"
#include "ground/base/counted.h"
#include "ground/base/files.h"
#include "ground/base/shell_quoted.h"
#include "ground/base/text_file.h"
#include "ground/process/signal_watch.h"
#include "predict/perf/estimate.h"

namespace systole {
namespace {

Result<PoolingSpec> pooling_of(const ServedModel& served, const BatchJob& job) {
  Result<PoolingSpec> pooling = pooling_needed(served, job.pooling, job.normalize);
  if (pooling.ok()) return pooling;
  Error wrong = std::move(pooling).error();
  if (wrong.kind == ErrorKind::invalid) wrong.hint = "write pooling: mean, last or cls, as the model was trained";
  return wrong;
}

Result<chat::ChatPrompt> chat_prompt_of(const ServedModel& served, const std::optional<std::string>& other) {
  std::optional<chat::ChatPrompt> chat = TRY(chat_of(served, other));
  if (!chat) {
    return key_error(ErrorKind::unsupported, "kind", "the model '{}' has no chat template", served.name)
        .hinted("write chat_template: and a file with one, or kind: completions");
  }
  return std::move(*chat);
}

// The model, as the rows of a job ask it.
struct OpenModel {
  std::unique_ptr<Engine> engine;
  ServedApi api;
};

Result<OpenModel> open_model(const ServedModel& served, const Machine& machine, const BatchJob& job,
                             const std::optional<std::string>& chat_template, bool computes) {
  const bool is_vectors = job.kind == BatchKind::embeddings;
  if (!is_vectors && served.model->task() == Task::masked) {
    return key_error(ErrorKind::unsupported, "kind", "the model '{}' has vectors of texts, and writes none",
                     served.name)
        .hinted("write kind: embeddings");
  }
  if (is_scored(job.kind) && served.encodes()) {
    return key_error(ErrorKind::unsupported, "kind",
                     "the model '{}' answers a text and does not go on from it, so it cannot say how likely one is",
                     served.name)
        .hinted("write kind: completions");
  }
  std::optional<PoolingSpec> pooling;
  std::optional<chat::ChatPrompt> chat;
  if (is_vectors) pooling = TRY(pooling_of(served, job));
  if (job.kind == BatchKind::chat) chat = TRY(chat_prompt_of(served, chat_template));
  EngineOptions wanted{.slots = is_scored(job.kind) ? 1 : job.slots, .cache = served.context_for(job.context)};
  wanted.parameter = job.weights;
  wanted.hidden = is_vectors;
  wanted.score = is_scored(job.kind);
  wanted.generates = is_generated(job.kind);
  std::unique_ptr<Engine> engine = computes ? TRY(open_engine(served, machine, std::move(wanted)))
                                            : TRY(create_engine(served, machine, std::move(wanted)));
  ServedApi api = served_api(served, *engine, job.name, std::move(chat), pooling);
  return OpenModel{std::move(engine), std::move(api)};
}

std::unique_ptr<BatchWork> work_of(const OpenModel& model, const ServedModel& served, const BatchJob& job,
                                   std::int64_t now) {
  if (job.kind == BatchKind::embeddings) return make_embedding_work(model.api, *model.engine);
  if (is_scored(job.kind)) return make_score_work(model.api, *model.engine, served.before);
  return make_completion_work(model.api, *model.engine, now);
}

// Errors: Failure(invalid), as estimate.
PricedBatch priced(const BatchPrice& price, const Engine& engine, const Machine& machine) {
  PricedBatch batch{.price = price};
  const Target& target = machine.device->target();
  const Estimate estimated = estimate(engine.program(), machine.speed);
  if (target.kind == "reference") {
    batch.unknown = "the reference backend has no measured rates";  // the machine's rates are those of its kernels
  } else if (estimated.unknown) {
    batch.unknown = *estimated.unknown;
  } else {
    batch.time = Seconds();
    for (const auto& [name, count] : price.calls)
      *batch.time += estimated.schedule_named(name).time * static_cast<double>(count);
  }
  batch.device = target.name;
  if (batch.time) batch.rates = machine.speed.source;
  batch.memory = serving_memory(engine.program(), Bytes(), Bytes());
  return batch;
}

Result<std::unique_ptr<Store>> folder_of(const std::filesystem::path& output, bool make) {
  if (output.filename().empty())
    return key_error(ErrorKind::invalid, "output", "'{}' names no file", output.string())
        .hinted("output: answers.jsonl");
  if (make) TRY(make_folders(output.parent_path()));
  return open_posix_store(output.has_parent_path() ? output.parent_path().string() : ".");
}

// What a finished shard's journal says. Its lock is not kept: thousands would be too many.
Result<BatchTotals> totals_of(const ReadJob& read, const BatchShard& shard, Clock& clock) {
  const BatchOutput file = read.output(shard);
  const bool is_there = TRY(file.store.exists(file.name));
  const bool is_begun = is_there || TRY(file.store.exists(file.name + ".journal/rows"));
  std::unique_ptr<BatchJournal> journal;
  if (is_there) journal = TRY(BatchJournal::open(file, read.facts(shard), clock.unix_time()));
  if (journal && journal->is_finished()) return journal->totals();
  return error(ErrorKind::not_found, "shard {} is {}: '{}' is to be computed", to_string(shard),
               is_begun ? "not finished" : "missing", file.path)
      .hinted(fmt::format("systole batch {} --shard {}", shell_word(read.file), to_string(shard)));
}

SharedBatch shared_of(const ReadJob& read, Clock& clock) {
  SharedBatch shared{
      .output = read.output({}), .rows = read.input.rows(), .shards = *read.job.shards, .now = clock.unix_time()};
  shared.facts = [&read](const std::optional<BatchShard>& shard) { return read.facts(shard); };
  shared.seal = [&read](bool anew) { return read.seal(anew); };
  return shared;
}

// Reads, prices and computes what is left. False: a signal came.
Result<bool> compute_rows(const ReadJob& read, const BatchOptions& options, const Machine& machine,
                          BatchJournal& journal, std::size_t rows, const BatchViewers& viewers) {
  const OpenModel model = TRY(open_model(read.served, machine, read.job, read.chat_template, !options.dry_run));
  const std::unique_ptr<BatchWork> work = work_of(model, read.served, read.job, journal.began());
  BatchRun run(read.job, read.input, *work, journal, options.shard.value_or(BatchShard()));
  std::optional<SignalWatch> own;
  const SignalWatch& watch = options.watch != nullptr ? *options.watch : own.emplace();
  const auto told = [&](const char* what, std::size_t of) {
    return [&, what, of](std::int64_t done) {
      viewers.progress(fmt::format("{} of {} {}", done, counted(of, "row"), what));
      return !watch.stop_requested();
    };
  };
  if (!TRY(run.prepare(told("read", read.input.rows())))) return false;
  PricedBatch price = priced(run.price(), *model.engine, machine);
  price.rows = static_cast<std::int64_t>(rows);
  price.failed = journal.totals().failed;
  price.input = read.bytes;
  viewers.priced(price);
  if (options.dry_run) return true;
  return run.compute(told("finished", rows));
}

Error other_table(const ReadJob& read) {
  return error(ErrorKind::exists, "'{}' is there, and not of this job", read.result({}))
      .hinted("move it away, and type the same command again: finished rows are kept");
}

}  // namespace

BatchFacts ReadJob::facts(const std::optional<BatchShard>& shard) const {
  std::string options = to_json(job.results) + chat_template.value_or("");
  if (shard && shard->count > 1) options += " shard " + to_string(*shard);
  const std::size_t rows = shard.value_or(BatchShard()).rows(input.rows());
  return {rows, hash, to_hex(input.hash()), to_hex(hash128(options))};
}

BatchOutput ReadJob::output(const std::optional<BatchShard>& shard) const {
  std::filesystem::path path(job.output);
  if (shard) path.replace_filename(shard_file(path.filename().string(), *shard));
  return {*folder, path.filename().string(), path.string()};
}

std::string ReadJob::result(const std::optional<BatchShard>& shard) const {
  if (shard || job.table.empty()) return output(shard).path;
  return std::filesystem::path(job.output).replace_filename(job.table).string();
}

Status ReadJob::check_place() const {
  // In this order: a process that joins the shards makes the output before the table.
  if (job.table.empty() || !TRY(folder->exists(job.table)) || TRY(folder->exists(output({}).name))) return {};
  return other_table(*this);
}

Status ReadJob::seal(bool anew) const {
  const std::string lines = output({}).name;
  if (!job.array.empty() && (anew || !TRY(folder->exists(job.array))))
    TRY(write_vector_array(*folder, lines, job.array));
  if (job.table.empty()) return {};
  const bool is_there = TRY(folder->exists(job.table));
  // Anew, it may be ours all the same: of a process that was killed before its journal said that all is there.
  if (is_there && anew && !TRY(is_recorded(*folder, lines, job))) return other_table(*this);
  if (is_there) return check_result_table(*folder, lines, job, result({}));
  return write_result_table(*folder, lines, job, input);
}

Result<ReadJob> read_job(const std::string& path, const std::string& output, const RunMessages& messages) {
  BatchJob job = TRY(parse_batch_job(TRY(read_text_file(path)), path));
  if (!output.empty()) job.output = output;
  std::string text = TRY(read_text_file(job.input));
  const Bytes bytes(text.size());
  BatchInput input = TRY(BatchInput::read(std::move(text), job.input));
  TRY(input.complete(job));
  TRY(check_carried(job, input));
  std::optional<std::string> chat_template;
  if (!job.chat_template.empty()) chat_template = TRY(read_text_file(job.chat_template));
  std::unique_ptr<Store> folder = TRY(folder_of(job.output, !output.empty()));
  ServedModel served = TRY(find_model(job.model, messages));
  if (job.name.empty()) job.name = served.last_name();
  std::string hash = TRY(served.hash());
  return ReadJob{path,
                 std::move(job),
                 bytes,
                 std::move(input),
                 std::move(chat_template),
                 std::move(folder),
                 std::move(served),
                 std::move(hash)};
}

Result<SharedRun> run_shared_batch(const ReadJob& read, const BatchOptions& options, const SharedViewers& viewers,
                                   Clock& clock) {
  TRY(read.check_place());
  const Machine machine = TRY(machine_for(read.served, options.backend, clock));
  std::optional<OpenModel> model;
  std::unique_ptr<BatchWork> work;
  const auto open_work = [&](std::int64_t began) -> Result<BatchWork*> {
    if (work != nullptr) return work.get();
    model.emplace(TRY(open_model(read.served, machine, read.job, read.chat_template, true)));
    work = work_of(*model, read.served, read.job, began);
    return work.get();
  };
  std::optional<SignalWatch> own;
  const SignalWatch& watch = options.watch != nullptr ? *options.watch : own.emplace();
  SharedProcess process(read.job, read.input, shared_of(read, clock), open_work, viewers, watch, clock);
  SharedOutcome made = TRY(process.run());
  return SharedRun{std::move(made), read.result({}), fmt::format("{} ({})", options.backend, machine.identity)};
}

Result<JoinedBatch> join_batch(const ReadJob& read, Clock& clock) {
  const BatchOutput output = read.output({});
  TRY(read.check_place());
  const std::size_t count = TRY(find_shards(*read.folder, output.name));
  std::vector<BatchTotals> shards;
  for (std::size_t i = 0; i < count; ++i) {
    const BatchShard shard{i, count};
    shards.push_back(TRY(totals_of(read, shard, clock)));
  }
  const auto whole = TRY(BatchJournal::open(output, read.facts({}), clock.unix_time()));
  if (whole->is_finished()) TRY(read.seal(false));
  for (std::size_t i = 0; i < count && !whole->is_finished(); ++i) {
    const BatchShard shard{i, count};
    TRY(join_shard(read.output(shard), shard, read.input.rows(), shards[i], *whole));
  }
  TRY(whole->finish([&read] { return read.seal(true); }));
  return JoinedBatch{read.result({}), count, whole->totals()};
}

Result<BatchOutcome> run_batch(const ReadJob& read, const BatchOptions& options, const BatchViewers& viewers,
                               Clock& clock) {
  const BatchOutput there = read.output(options.shard);
  if (!options.shard) TRY(read.check_place());
  const std::unique_ptr<Store> copy = options.dry_run ? TRY(copy_for_reading(there)) : nullptr;
  const BatchOutput place{copy ? *copy : there.store, there.name, there.path};
  const BatchFacts facts = read.facts(options.shard);
  const auto journal = TRY(BatchJournal::open(place, facts, clock.unix_time()));
  if (read.job.shards) TRY(count_shards(shared_of(read, clock), *journal));
  BatchOutcome made{.path = read.result(options.shard), .before = journal->totals(), .rows = facts.rows};
  const Machine machine = TRY(machine_for(read.served, options.backend, clock));
  const Seconds began = clock.now();
  if (options.dry_run || !journal->is_finished()) {
    // Where only what is made of the lines failed, no model is loaded for it.
    const bool has_all = journal->totals().rows == static_cast<std::int64_t>(facts.rows);
    if (options.dry_run || !has_all)
      made.stopped = !TRY(compute_rows(read, options, machine, *journal, facts.rows, viewers));
    if (!made.stopped && !options.dry_run) {
      TRY(journal->finish([&]() -> Status { return options.shard ? Status() : read.seal(true); }));
    }
  } else if (!options.shard) {
    TRY(read.seal(false));
  }
  made.all = journal->totals();
  made.dropped = journal->dropped();
  made.machine = machine.identity;
  made.took = clock.now() - began;
  return made;
}

}  // namespace systole

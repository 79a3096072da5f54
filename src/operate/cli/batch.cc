// `systole batch JOB`: a request for each row of a file, to a model of this machine; into a file that is whole or not
// there.

#include <algorithm>
#include <filesystem>

#include "execute/serve/batch/batch_run.h"
#include "ground/base/counted.h"
#include "ground/base/shell_quoted.h"
#include "ground/base/text_file.h"
#include "ground/process/signal_watch.h"
#include "operate/cli/batch_price.h"
#include "operate/cli/command.h"
#include "operate/cli/device_options.h"
#include "operate/cli/model_argument.h"

namespace systole::cli {
namespace {

struct BatchCommand {
  std::string job, shard, backend = "cpu";
  bool dry_run = false, join = false;
};

PoolingSpec pooling_of(const ServedModel& served, const BatchJob& job) {
  Result<PoolingSpec> pooling = pooling_needed(served, job.pooling, job.normalize);
  if (pooling.ok()) return *pooling;
  Error wrong = std::move(pooling).error();
  if (wrong.kind == ErrorKind::invalid) wrong.hint = "write pooling: mean, last or cls, as the model was trained";
  fail(std::move(wrong));
}

chat::ChatPrompt chat_prompt_of(const ServedModel& served, const std::optional<std::string>& other) {
  std::optional<chat::ChatPrompt> chat = chat_of(served, other).value();
  if (!chat) {
    fail(key_error(ErrorKind::unsupported, "kind", "the model '{}' has no chat template", served.name)
             .hinted("write chat_template: and a file with one, or kind: completions"));
  }
  return std::move(*chat);
}

// As open_engine; without its parameters where nothing is computed.
std::unique_ptr<Engine> engine_of(const ServedModel& served, const Machine& machine, EngineOptions wanted,
                                  bool computes) {
  if (computes) return open_engine(served, machine, std::move(wanted)).value();
  wanted.parameter = parameter_for(served, wanted.parameter).value();
  wanted.cache = std::min(served.spec.context(), wanted.cache);
  return Engine::create(*served.model, *machine.device, wanted).value();
}

// The model, as the rows of a job ask it.
struct OpenModel {
  std::unique_ptr<Engine> engine;
  ServedApi api;
};

OpenModel open_model(const ServedModel& served, const Machine& machine, const BatchJob& job,
                     const std::optional<std::string>& chat_template, bool computes) {
  const bool is_vectors = job.kind == BatchKind::embeddings;
  if (!is_vectors && served.model->task() == Task::masked) {
    fail(key_error(ErrorKind::unsupported, "kind", "the model '{}' has vectors of texts, and writes none", served.name)
             .hinted("write kind: embeddings"));
  }
  if (is_scored(job.kind) && served.encodes()) {
    fail(key_error(ErrorKind::unsupported, "kind",
                   "the model '{}' answers a text and does not go on from it, so it cannot say how likely one is",
                   served.name)
             .hinted("write kind: completions"));
  }
  std::optional<PoolingSpec> pooling;
  std::optional<chat::ChatPrompt> chat;
  if (is_vectors) pooling = pooling_of(served, job);
  if (job.kind == BatchKind::chat) chat = chat_prompt_of(served, chat_template);
  EngineOptions wanted{.slots = is_scored(job.kind) ? 1 : job.slots, .cache = served.context_for(job.context)};
  wanted.parameter = job.weights;
  wanted.hidden = is_vectors;
  wanted.score = is_scored(job.kind);
  wanted.generates = is_generated(job.kind);
  std::unique_ptr<Engine> engine = engine_of(served, machine, std::move(wanted), computes);
  ServedApi api = served_api(served, *engine, job.name, std::move(chat), pooling);
  return {std::move(engine), std::move(api)};
}

std::unique_ptr<BatchWork> work_of(const OpenModel& model, const ServedModel& served, const BatchJob& job,
                                   std::int64_t now) {
  if (job.kind == BatchKind::embeddings) return make_embedding_work(model.api, *model.engine);
  if (is_scored(job.kind)) return make_score_work(model.api, *model.engine, served.before);
  return make_completion_work(model.api, *model.engine, now);
}

std::string rows_text(const BatchTotals& totals, std::int64_t before) {
  std::string text = counted(totals.rows, "row");
  if (totals.failed > 0) text += fmt::format(", {} of them with an error", totals.failed);
  if (before > 0) text += fmt::format(", {} of them finished before", before);
  return text;
}

void report(const BatchCommand& options, const std::string& out, const ServedModel& served, bool is_text,
            const Machine& machine, const BatchJournal& journal, const BatchTotals& before, Seconds took,
            Context& context) {
  const BatchTotals& all = journal.totals();
  const std::int64_t tokens =
      is_text ? all.answer_tokens - before.answer_tokens : all.prompt_tokens - before.prompt_tokens;
  const double rate = took.count() > 0 ? static_cast<double>(tokens) / took.count() : 0;
  context.out.notice(fmt::format(
      "{} in {}: {} and {}; {} of them here in {}, {:.4g} tokens/s on {} ({}), from {}", rows_text(all, before.rows),
      out, counted(all.prompt_tokens, "prompt token"), counted(all.answer_tokens, "new token"),
      counted(tokens, is_text ? "new token" : "prompt token"), to_string(took), rate, options.backend, machine.identity,
      served.step ? fmt::format("step {} of {}", *served.step, served.name) : served.name));
  context.out.json(Node::map({{"rows", all.rows},
                              {"failed", all.failed},
                              {"rows_before", before.rows},
                              {"lines_dropped", journal.dropped()},
                              {"prompt_tokens", all.prompt_tokens},
                              {"tokens", all.answer_tokens},
                              {"seconds_s", took.count()},
                              {"tokens_per_s", rate},
                              {"device", options.backend},
                              {"machine", machine.identity},
                              {"from", served.name},
                              {"step", served.step ? Node(*served.step) : Node()},
                              {"out", out}}));
}

ExitCode tell(const PricedBatch& price, Context& context) {
  context.out.end_progress();
  context.out.prose(lines_of(price));
  context.out.json(node_of(price));
  return ExitCode::done;
}

std::unique_ptr<Store> folder_of(const std::filesystem::path& output) {
  if (output.filename().empty())
    fail(
        key_error(ErrorKind::invalid, "output", "'{}' names no file", output.string()).hinted("output: answers.jsonl"));
  return open_posix_store(output.has_parent_path() ? output.parent_path().string() : ".").value();
}

// A job with all that it names.
struct ReadJob {
  BatchJob job;
  Bytes bytes;  // of the input
  BatchInput input;
  std::optional<std::string> chat_template;
  std::unique_ptr<Store> folder;  // of the output
  ServedModel served;
  std::string hash;  // of the model

  // Of a shard; nothing: of the whole.
  BatchFacts facts(const std::optional<BatchShard>& shard) const {
    std::string options = to_json(job.results) + chat_template.value_or("");
    if (shard && shard->count > 1) options += " shard " + to_string(*shard);
    const std::size_t rows = shard.value_or(BatchShard()).rows(input.rows());
    return {rows, hash, to_hex(input.hash()), to_hex(hash128(options))};
  }
  BatchOutput output(const std::optional<BatchShard>& shard) const {
    std::filesystem::path path(job.output);
    if (shard) path.replace_filename(shard_file(path.filename().string(), *shard));
    return {*folder, path.filename().string(), path.string()};
  }
};

ReadJob read_job(const BatchCommand& options, Context& context) {
  BatchJob job = parse_batch_job(read_text_file(options.job).value(), options.job).value();
  std::string text = read_text_file(job.input).value();
  const Bytes bytes(text.size());
  BatchInput input = BatchInput::read(std::move(text), job.input).value();
  input.complete(job).value();
  std::optional<std::string> chat_template;
  if (!job.chat_template.empty()) chat_template = read_text_file(job.chat_template).value();
  std::unique_ptr<Store> folder = folder_of(job.output);
  ServedModel served = find_model_argument(job.model, context);
  if (job.name.empty()) job.name = served.last_name();
  std::string hash = served.hash().value();
  return {std::move(job),    bytes,          std::move(input), std::move(chat_template), std::move(folder),
          std::move(served), std::move(hash)};
}

ExitCode exit_of(const BatchTotals& all) {
  return all.rows > 0 && all.failed == all.rows ? ExitCode::no : ExitCode::done;
}

// What a finished shard's journal says. Its lock is not kept: thousands would be too many.
BatchTotals totals_of(const ReadJob& read, const BatchShard& shard, const BatchCommand& options, Context& context) {
  const BatchOutput file = read.output(shard);
  const bool is_there = file.store.exists(file.name).value();
  const bool is_begun = is_there || file.store.exists(file.name + ".journal/rows").value();
  std::unique_ptr<BatchJournal> journal;
  if (is_there) journal = BatchJournal::open(file, read.facts(shard), context.clock.unix_time()).value();
  if (journal && journal->is_finished()) return journal->totals();
  fail(error(ErrorKind::not_found, "shard {} is {}: '{}' is to be computed", to_string(shard),
             is_begun ? "not finished" : "missing", file.path)
           .hinted(fmt::format("systole batch {} --shard {}", shell_word(options.job), to_string(shard))));
}

ExitCode join(const BatchCommand& options, const ReadJob& read, Context& context) {
  const BatchOutput output = read.output({});
  const std::size_t count = find_shards(*read.folder, output.name).value();
  std::vector<BatchTotals> shards;
  for (std::size_t i = 0; i < count; ++i) shards.push_back(totals_of(read, {i, count}, options, context));
  const auto whole = BatchJournal::open(output, read.facts({}), context.clock.unix_time()).value();
  for (std::size_t i = 0; i < count && !whole->is_finished(); ++i) {
    const BatchShard shard{i, count};
    join_shard(read.output(shard), shard, read.input.rows(), shards[i], *whole).value();
  }
  whole->finish().value();
  const BatchTotals& all = whole->totals();
  context.out.notice(fmt::format("{} in {}, of {}: {} and {}", rows_text(all, 0), output.path, counted(count, "shard"),
                                 counted(all.prompt_tokens, "prompt token"), counted(all.answer_tokens, "new token")));
  context.out.json(Node::map({{"rows", all.rows},
                              {"failed", all.failed},
                              {"shards", count},
                              {"prompt_tokens", all.prompt_tokens},
                              {"tokens", all.answer_tokens},
                              {"out", output.path}}));
  return exit_of(all);
}

ExitCode batch(const BatchCommand& options, Context& context) {
  std::optional<BatchShard> shard;
  if (!options.shard.empty()) shard = parse_batch_shard(options.shard).value();
  const ReadJob read = read_job(options, context);
  if (options.join) return join(options, read, context);
  const BatchOutput there = read.output(shard);
  const std::unique_ptr<Store> copy = options.dry_run ? copy_for_reading(there).value() : nullptr;
  const BatchOutput place{copy ? *copy : there.store, there.name, there.path};
  const BatchFacts facts = read.facts(shard);
  const auto journal = BatchJournal::open(place, facts, context.clock.unix_time()).value();
  const BatchTotals before = journal->totals();
  const Machine machine = machine_for(read.served, options.backend, context.clock).value();
  const Seconds began = context.clock.now();
  if (options.dry_run || !journal->is_finished()) {
    const OpenModel model = open_model(read.served, machine, read.job, read.chat_template, !options.dry_run);
    const std::unique_ptr<BatchWork> work = work_of(model, read.served, read.job, journal->began());
    BatchRun run(read.job, read.input, *work, *journal, shard.value_or(BatchShard()));
    const SignalWatch watch;
    const auto told = [&](const char* what, std::size_t of) {
      return [&, what, of](std::int64_t done) {
        context.out.progress(fmt::format("{} of {} {}", done, counted(of, "row"), what));
        return !watch.stop_requested();
      };
    };
    bool whole = run.prepare(told("read", read.input.rows())).value();
    if (whole) {
      PricedBatch price = priced(run.price(), *model.engine, machine);
      price.rows = static_cast<std::int64_t>(facts.rows);
      price.failed = journal->totals().failed;
      price.input = read.bytes;
      if (options.dry_run) return tell(price, context);
      context.out.notice(line_of(price));
      whole = run.compute(told("finished", facts.rows)).value();
    }
    context.out.end_progress();
    if (!whole && options.dry_run) return ExitCode::interrupted;
    if (!whole) {
      context.out.note(
          fmt::format("stopped with {} of {} finished", journal->totals().rows, counted(facts.rows, "row")),
          "go on with: " + context.command_line);
      return ExitCode::saved;
    }
    journal->finish().value();
  }
  report(options, place.path, read.served, is_generated(read.job.kind), machine, *journal, before,
         context.clock.now() - began, context);
  if (shard) {
    context.out.message(fmt::format("next, with all {} there: systole batch {} --join", counted(shard->count, "shard"),
                                    shell_word(options.job)));
  }
  return exit_of(journal->totals());
}

}  // namespace

void add_batch(Subcommand app, Context& context) {
  auto options = std::make_shared<BatchCommand>();
  Subcommand command = add_command(app, "batch", "a model's answer to each row of a file", options, context, batch);
  command
      .add_option(
          "job", options->job,
          "a YAML file: model, input (.jsonl, .csv or .txt), output, kind (completions, chat, embeddings, classify "
          "or score), prompt, and fields of the requests")
      .required();
  command.add_flag("--dry-run", options->dry_run,
                   "print the rows, tokens, predicted time and memory of what is left to do, and compute nothing");
  command.add_option("--shard", options->shard,
                     "I/N: only the rows whose index is I modulo N, into a file of their own (answers.0-of-3.jsonl)");
  command
      .add_flag("--join", options->join,
                "make the output of the files of all its shards, in the order of the rows; nothing is computed")
      .excludes("--shard")
      .excludes("--dry-run");
  add_device_options(command, options->backend);
}

}  // namespace systole::cli

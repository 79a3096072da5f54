// `systole batch JOB`: a request for each row of a file, to a model of this machine; into a file that is whole or not
// there.

#include "ground/base/counted.h"
#include "ground/base/shell_quoted.h"
#include "operate/cli/batch_schedule.h"
#include "operate/cli/command.h"
#include "operate/cli/device_options.h"
#include "operate/cli/run_scene.h"
#include "operate/run/batch_here.h"

namespace systole::cli {
namespace {

struct BatchCommand {
  std::string job, shard, backend = "cpu";
  bool dry_run = false, join = false;
  BatchScheduleOptions schedule = {};
  std::string output = {};  // of a run of the schedule; empty: the job's
};

std::string tokens_text(const BatchPrice& price) {
  std::string text = counted(price.prompt_tokens, "prompt token");
  if (price.new_tokens > 0) text += fmt::format(" and at most {}", counted(price.new_tokens, "new token"));
  return text;
}

std::string time_text(const PricedBatch& batch) {
  if (!batch.time) return "unknown: " + batch.unknown;
  return (batch.price.new_tokens > 0 ? "at most " : "about ") + to_string(*batch.time);
}

// "12 rows to compute, with 48 prompt tokens, …"
std::string line_of(const PricedBatch& batch) {
  std::string text = fmt::format("{} to compute, with {}", counted(batch.price.rows, "row"), tokens_text(batch.price));
  if (batch.time) text += fmt::format("; predicted: {}", time_text(batch));
  return text;
}

std::string lines_of(const PricedBatch& batch) {
  const ServingMemory& memory = batch.memory;
  std::string text = fmt::format("rows    {} of {} to compute", batch.price.rows, batch.rows);
  if (batch.failed > 0) text += fmt::format("; {} with an error", counted(batch.failed, "row"));
  text += fmt::format("\ntokens  {}\n", tokens_text(batch.price));
  text += fmt::format("time    {}\n", time_text(batch));
  text += fmt::format("device  {}{}\n", batch.device, batch.rates.empty() ? "" : "; its rates: " + batch.rates);
  text +=
      fmt::format("memory  {}: {} of parameters, {} of keys and values, {} of activations\n", to_string(memory.total()),
                  to_string(memory.parameters), to_string(memory.cache), to_string(memory.rest));
  text += fmt::format("input   {}\n", to_string(batch.input));
  return text;
}

Node node_of(const PricedBatch& batch) {
  Node calls = Node::map();
  for (const auto& [name, count] : batch.price.calls) calls.set(name, count);
  const ServingMemory& memory = batch.memory;
  return Node::map({{"rows", batch.rows},
                    {"rows_to_compute", batch.price.rows},
                    {"failed", batch.failed},
                    {"prompt_tokens", batch.price.prompt_tokens},
                    {"new_tokens_at_most", batch.price.new_tokens},
                    {"predicted_s", batch.time ? Node(batch.time->count()) : Node()},
                    {"unknown", batch.time ? Node() : Node(batch.unknown)},
                    {"device", batch.device},
                    {"rates", batch.time ? Node(batch.rates) : Node()},
                    {"calls", std::move(calls)},
                    {"memory_bytes", Node::map({{"total", memory.total().count()},
                                                {"parameters", memory.parameters.count()},
                                                {"cache", memory.cache.count()},
                                                {"activations", memory.rest.count()}})},
                    {"input_bytes", batch.input.count()}});
}

std::string rows_text(const BatchTotals& totals, std::int64_t before) {
  std::string text = counted(totals.rows, "row");
  if (totals.failed > 0) text += fmt::format(", {} of them with an error", totals.failed);
  if (before > 0) text += fmt::format(", {} of them finished before", before);
  return text;
}

void report(const BatchCommand& options, const ReadJob& read, const BatchOutcome& made, Context& context) {
  const ServedModel& served = read.served;
  const bool is_text = is_generated(read.job.kind);
  const BatchTotals &all = made.all, &before = made.before;
  const std::int64_t tokens =
      is_text ? all.answer_tokens - before.answer_tokens : all.prompt_tokens - before.prompt_tokens;
  const double rate = made.took.count() > 0 ? static_cast<double>(tokens) / made.took.count() : 0;
  context.out.notice(fmt::format(
      "{} in {}: {} and {}; {} of them here in {}, {:.4g} tokens/s on {} ({}), from {}", rows_text(all, before.rows),
      made.path, counted(all.prompt_tokens, "prompt token"), counted(all.answer_tokens, "new token"),
      counted(tokens, is_text ? "new token" : "prompt token"), to_string(made.took), rate, options.backend,
      made.machine, served.step ? fmt::format("step {} of {}", *served.step, served.name) : served.name));
  context.out.json(Node::map({{"rows", all.rows},
                              {"failed", all.failed},
                              {"rows_before", before.rows},
                              {"lines_dropped", made.dropped},
                              {"prompt_tokens", all.prompt_tokens},
                              {"tokens", all.answer_tokens},
                              {"seconds_s", made.took.count()},
                              {"tokens_per_s", rate},
                              {"device", options.backend},
                              {"machine", made.machine},
                              {"from", served.name},
                              {"step", served.step ? Node(*served.step) : Node()},
                              {"out", made.path}}));
}

ExitCode exit_of(const BatchTotals& all) {
  return all.rows > 0 && all.failed == all.rows ? ExitCode::no : ExitCode::done;
}

ExitCode join(const ReadJob& read, Context& context) {
  const JoinedBatch made = join_batch(read, context.clock).value();
  const BatchTotals& all = made.all;
  context.out.notice(fmt::format("{} in {}, of {}: {} and {}", rows_text(all, 0), made.path,
                                 counted(made.shards, "shard"), counted(all.prompt_tokens, "prompt token"),
                                 counted(all.answer_tokens, "new token")));
  context.out.json(Node::map({{"rows", all.rows},
                              {"failed", all.failed},
                              {"shards", made.shards},
                              {"prompt_tokens", all.prompt_tokens},
                              {"tokens", all.answer_tokens},
                              {"out", made.path}}));
  return exit_of(all);
}

// One of the processes of a job with shards.
ExitCode compute_shared(const BatchCommand& options, const ReadJob& read, const SignalWatch* watch, Context& context) {
  const auto begun = [&](std::size_t rows, std::size_t shards) {
    context.out.notice(fmt::format("{} in {}; more processes of this job may join and leave", counted(rows, "row"),
                                   counted(shards, "shard")));
  };
  const SharedViewers viewers{[&](const std::string& text) { context.out.progress(text); }, begun};
  const SharedRun made =
      run_shared_batch(read, {.backend = options.backend, .watch = watch}, viewers, context.clock).value();
  context.out.end_progress();
  const bool is_text = is_generated(read.job.kind);
  const std::string here =
      fmt::format("{} of {} here, {} and {}, in {} on {}", counted(made.here.rows, "row"),
                  counted(made.end.computed, "finished shard"), counted(made.here.prompt_tokens, "prompt token"),
                  counted(is_text ? made.here.answer_tokens : 0, "new token"), to_string(made.took), made.place);
  if (!made.end.is_finished) {
    context.out.note("stopped with " + here, "go on with: " + context.command_line);
    return ExitCode::saved;
  }
  const BatchTotals& all = made.end.totals;
  context.out.notice(fmt::format("{} in {}; {}", rows_text(all, 0), made.path, here));
  context.out.json(Node::map({{"rows", all.rows},
                              {"failed", all.failed},
                              {"rows_here", made.here.rows},
                              {"shards", made.end.shards},
                              {"shards_here", made.end.computed},
                              {"joined_here", made.end.is_joined},
                              {"prompt_tokens", all.prompt_tokens},
                              {"tokens", all.answer_tokens},
                              {"seconds_s", made.took.count()},
                              {"place", made.place},
                              {"out", made.path}}));
  return exit_of(all);
}

// `watch`: as BatchOptions::watch.
ExitCode compute(const BatchCommand& options, const SignalWatch* watch, Context& context) {
  std::optional<BatchShard> shard;
  if (!options.shard.empty()) shard = parse_batch_shard(options.shard).value();
  const ReadJob read = read_job(options.job, options.output, scene_of(context).messages).value();
  if (read.job.shards && (shard || options.join))
    fail(key_error(ErrorKind::invalid, "shards", "the processes of this job take shards in turn, and join them")
             .hinted("systole batch " + shell_word(options.job) + ", without --shard and --join; or take shards out"));
  if (options.join) return join(read, context);
  if (read.job.shards && !options.dry_run) return compute_shared(options, read, watch, context);
  const auto tell = [&](const PricedBatch& price) {
    if (!options.dry_run) return context.out.notice(line_of(price));
    context.out.end_progress();
    context.out.prose(lines_of(price));
    context.out.json(node_of(price));
  };
  const BatchViewers viewers{[&](const std::string& text) { context.out.progress(text); }, tell};
  const BatchOutcome made =
      run_batch(read, {shard, options.backend, options.dry_run, watch}, viewers, context.clock).value();
  context.out.end_progress();
  if (options.dry_run) return made.stopped ? ExitCode::interrupted : ExitCode::done;
  if (made.stopped) {
    context.out.note(fmt::format("stopped with {} of {} finished", made.all.rows, counted(made.rows, "row")),
                     "go on with: " + context.command_line);
    return ExitCode::saved;
  }
  report(options, read, made, context);
  if (shard) {
    context.out.message(fmt::format("next, with all {} there: systole batch {} --join", counted(shard->count, "shard"),
                                    shell_word(options.job)));
  }
  return exit_of(made.all);
}

ExitCode batch(const BatchCommand& options, Context& context) {
  if (!options.schedule.any()) return compute(options, nullptr, context);
  const auto run = [&](const std::string& output, const SignalWatch& watch) {
    BatchCommand one = options;
    one.output = output;
    return compute(one, &watch, context);
  };
  return run_scheduled(options.schedule, options.job, run, context);
}

}  // namespace

void add_batch(Subcommand app, Context& context) {
  auto options = std::make_shared<BatchCommand>();
  Subcommand command = add_command(app, "batch", "a model's answer to each row of a file", options, context, batch);
  command
      .add_option("job", options->job,
                  "a YAML file: model, input (.jsonl, .csv, .parquet or .txt), output (.jsonl, .parquet or .csv), kind "
                  "(completions, chat, embeddings, classify or score), prompt, and fields of the requests")
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
  for (const Option& option : add_schedule_options(command, options->schedule))
    option.excludes("--shard").excludes("--join").excludes("--dry-run");
  add_device_options(command, options->backend);
}

}  // namespace systole::cli

// `systole data probe WORKLOAD`: how fast this machine prepares the workload's text and reads its rows, stage by stage,
// and what a step needs.

#include "operate/cli/data_probe.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "describe/models/list.h"
#include "execute/data/formats/record_file.h"
#include "execute/train/training_job.h"
#include "ground/base/counted.h"
#include "ground/base/files.h"
#include "ground/process/machine.h"
#include "operate/cli/data_probe_images.h"
#include "operate/cli/workload_options.h"
#include "operate/run/built_data.h"
#include "operate/run/feed_here.h"
#include "operate/run/inject.h"
#include "operate/run/plan_here.h"
#include "operate/run/rows_if_built.h"

namespace systole::cli {
namespace {

struct ProbeOptions {
  WorkloadArguments workload;
  double seconds = 5;
  bool save = false;
  std::string inject;
  ImageProbeOptions images;
};

std::optional<Tokenizer> tokenizer_of(const std::optional<Dataset>& built, const BuildOptions& options) {
  if (built) return built->tokenizer;
  if (!options.tokenizer_model) return std::nullopt;
  const auto use = options.target_length > 0 ? TokenizerUse::pairs : TokenizerUse::documents;
  return Tokenizer::load(*options.tokenizer_model, use).value();
}

// Holds up the reader as `run --inject` does.
std::function<void(std::int64_t)> hold_of(const std::string& text, Clock& clock) {
  if (text.empty()) return nullptr;
  if (!text.starts_with("data=") || text.find(',') != text.npos)
    fail(error(ErrorKind::invalid, "--inject {}: a probe reads rows, and nothing else", text).hinted("data=50ms"));
  RunRequest request;
  CommFaults comm;
  inject(text, clock, request, comm).value();
  return request.before_batch;
}

std::string rate_text(Seconds per_byte) {
  return per_byte > Seconds() ? to_string(BytesPerSecond(1 / per_byte.count())) : "-";
}

std::string sources_text(const std::vector<SourceProbe>& sources, int threads, int width) {
  constexpr std::array kStages{"open", "read", "decompress", "decode", "tokenize", "pack"};
  std::vector<std::string> head{"text", "files>", "size>", "read>"};
  for (const char* stage : kStages) head.push_back(std::string(stage) + ">");
  head.push_back("slowest");
  std::vector<std::vector<std::string>> rows;
  for (const SourceProbe& source : sources) {
    std::vector<std::string> row{source.kind, with_commas(source.files), to_string(source.size),
                                 fmt::format("{} {}", to_string(source.read), source.cold ? "cold" : "warm")};
    std::pair<std::string, Seconds> slowest;
    for (const char* stage : kStages) {
      const auto found = std::ranges::find(source.stages, stage, &std::pair<std::string, Seconds>::first);
      const bool open = std::string_view(stage) == "open";  // a file's time, however long the file is
      const double text =
          static_cast<double>(source.text.count()) / static_cast<double>(std::max<std::int64_t>(1, source.opened));
      row.push_back(found == source.stages.end() ? "-"
                    : open                       ? to_string(Seconds(found->second.count() * text))
                                                 : rate_text(found->second));
      if (found != source.stages.end() && found->second > slowest.second) slowest = *found;
    }
    row.push_back(slowest.first);
    rows.push_back(std::move(row));
  }
  std::string text = table(head, rows, width);
  text += fmt::format("open is of a file; rates are bytes of text a second, one thread; the build tokenizes on {}\n",
                      counted(threads, "thread"));
  return text;
}

std::string shards_text(const ShardProbe& shards, int width) {
  std::vector<std::vector<std::string>> rows;
  for (const ReaderProbe& rate : shards.readers)
    rows.push_back({counted(rate.readers, "thread"), rate.cold ? "cold" : "warm",
                    with_commas(std::llround(rate.rows_per_second)),
                    to_string(BytesPerSecond(rate.rows_per_second * shards.row_bytes)), to_string(rate.processor),
                    to_string(rate.longest)});
  return fmt::format("\n{} of shards, {} a row; read in order {}, {}\n", to_string(shards.size),
                     to_string(Bytes(std::llround(shards.row_bytes))), to_string(shards.read),
                     shards.cold ? "cold" : "warm") +
         table({"rows", "", "rows/s>", "of shards>", "processor a row>", "longest wait>"}, rows, width);
}

Node sources_node(const std::vector<SourceProbe>& sources) {
  Node list = Node::sequence();
  for (const SourceProbe& source : sources) {
    Node stages = Node::map();
    for (const auto& [stage, time] : source.stages)
      if (time > Seconds()) stages.set(stage, 1 / time.count());
    list.push(Node::map({{"kind", source.kind},
                         {"files", source.files},
                         {"bytes", source.size.count()},
                         {"read_bytes", source.read.count()},
                         {"cold", source.cold},
                         {"text_bytes", source.text.count()},
                         {"documents", source.documents},
                         {"text_bytes_per_second", stages}}));
  }
  return list;
}

Node shards_node(const ShardProbe& shards) {
  Node rates = Node::sequence();
  for (const ReaderProbe& rate : shards.readers)
    rates.push(Node::map({{"readers", rate.readers},
                          {"cold", rate.cold},
                          {"rows_per_second", rate.rows_per_second},
                          {"processor_seconds_per_row", rate.processor.count()},
                          {"longest_wait_seconds", rate.longest.count()}}));
  return Node::map({{"bytes", shards.size.count()},
                    {"row_bytes", shards.row_bytes},
                    {"read_bytes_per_second", shards.read.count()},
                    {"cold", shards.cold},
                    {"rows", rates}});
}

std::optional<ShardProbe> probe_shards(const Workload& workload, const Dataset& dataset, const ProbeOptions& options,
                                       const FeedProbeOptions& how, Context& context) {
  std::vector<std::string> paths;
  const std::string folder = absolute_path(workload.data.folder).value();
  for (const ShardInfo& shard : dataset.manifest.train.shards)
    paths.push_back(fmt::format("{}/{}/{}", folder, dataset.manifest.key, shard.path));
  RowReaderOptions rows = row_options(workload, dataset.tokenizer, workload.train.batch, RowPass::endless);
  rows.before_batch = hold_of(options.inject, context.clock);
  return probe_rows(dataset.train, paths, rows, context.clock, how).value();
}

// A step on this machine, if its time can be said.
std::optional<Seconds> step_here(const Workload& workload, Clock& clock) {
  if (!workload.has_model()) return std::nullopt;
  const Result<PlanFacts> facts = plan_here(workload, num_parameters(*make_model(workload.model)), clock);
  return facts.ok() ? facts->step : std::nullopt;
}

ExitCode data_probe(const ProbeOptions& options, Context& context) {
  if (!options.images.field.empty())
    return probe_images_of(options.workload.path, options.images, Seconds(options.seconds), context);
  if (record_format_of(options.workload.path)) refuse_records(options.workload.path);
  const LoadedWorkload loaded = load_workload(options.workload).value();
  const Workload& workload = loaded.workload;
  if (workload.data.kind != DataSpec::Kind::text) {
    fail(
        loaded.source.placed(error(ErrorKind::invalid, "'{}' makes its data up: nothing is read", options.workload.path)
                                 .hinted("data.kind: text is what is read"),
                             "data.kind"));
  }
  hold_of(options.inject, context.clock);
  const TextBuild text = text_build_of(workload, loaded.source).value();
  const BuildOptions& build = text.options;
  raise_open_files();  // each shard is one
  const std::optional<BuiltData> built = find_like_data(workload, build);
  std::optional<Dataset> dataset;
  if (built) {
    Result<Dataset> opened = open_dataset(*built->folder, built->manifest.key, build.sequence_length, build.policy);
    if (opened.ok()) dataset = *std::move(opened);
  }
  const std::optional<Tokenizer> tokenizer = tokenizer_of(dataset, build);
  const FeedProbeOptions how{.budget = Seconds(options.seconds / 2)};
  context.out.notice(fmt::format("about {:.3g} s", options.seconds));
  FeedMeasured measured;
  measured.held_up = !options.inject.empty();
  measured.sources = probe_sources(build, tokenizer ? &*tokenizer : nullptr, context.clock, how).value();
  context.out.prose(sources_text(measured.sources, build.threads, context.out.width()));
  if (dataset) measured.shards = probe_shards(workload, *dataset, options, how, context);
  Node node = Node::map({{"sources", sources_node(measured.sources)},
                         {"shards", measured.shards ? shards_node(*measured.shards) : Node()}});
  if (measured.shards) {
    context.out.prose(shards_text(*measured.shards, context.out.width()));
    FeedNeed need{.rows = workload.train.batch, .row_bytes = measured.shards->row_bytes};
    if (workload.data.buckets) need.rows = rows_of(workload, dataset->train->packing).step_rows();
    need.step = step_here(workload, context.clock);
    need.readers = workload.data.readers;
    need.queue = workload.data.queue;
    const PlannedFeed feed = plan_feed(need, speed_of(*measured.shards, "now"));
    context.out.prose(feed_text(feed, need.step.value_or(Seconds()) + feed.wait));
    if (!feed.remedy.empty()) context.out.message("hint: " + feed.remedy);
    node.set("rows_a_step", feed.rows);
    node.set("needed_rows_per_second", feed.rows_per_second > 0 ? Node(feed.rows_per_second) : Node());
  } else {
    context.out.message("the reader of rows is not measured: the data is not built yet");
    context.out.message("next: systole data build " + words_of(options.workload));
  }
  if (options.save) {
    const std::string file = save_feed(workload, measured, context.clock).value();
    node.set("file", file);
    context.out.message("written: " + file + "; plans and runs of this text read it from now on");
  }
  context.out.json(node);
  return ExitCode::done;
}

}  // namespace

void add_data_probe(Subcommand group, Context& context) {
  auto options = std::make_shared<ProbeOptions>();
  Subcommand command =
      add_command(group, "probe", "how fast this machine prepares the text and reads its rows, by stage", options,
                  context, data_probe);
  add_workload_arguments(command, options->workload);
  command.add_option("--seconds", options->seconds, "about how long it measures").check(positive()).default_str("5");
  command.add_flag("--save", options->save, "keep the rates in the user's catalog: plans and runs use them");
  command.add_option("--inject", options->inject, "hold up the reader as run --inject does, as data=50ms");
  command
      .add_option("--image", options->images.field,
                  "measure images instead: WORKLOAD is a file of records, and this the field of the image, as jpg")
      .excludes("--save")
      .excludes("--inject");
  command.add_option("--size", options->images.size, "of images: what they are resized to, width and height")
      .check(at_least(1))
      .needs("--image")
      .default_str("224");
}

}  // namespace systole::cli

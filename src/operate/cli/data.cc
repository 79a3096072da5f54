// `systole data build | show | verify WORKLOAD`: the tokens of a workload's text. Other commands of the group: data_*.cc.

#include <algorithm>

#include "ground/base/counted.h"
#include "ground/process/signal_watch.h"
#include "operate/cli/data_bigquery.h"
#include "operate/cli/data_cat.h"
#include "operate/cli/data_contamination.h"
#include "operate/cli/data_lengths.h"
#include "operate/cli/data_move.h"
#include "operate/cli/data_pack.h"
#include "operate/cli/data_probe.h"
#include "operate/cli/mixture_table.h"
#include "operate/cli/workload_options.h"
#include "operate/run/built_data.h"
#include "operate/run/data_told.h"

namespace systole::cli {
namespace {

struct DataOptions {
  WorkloadArguments workload;
  ContaminationArguments contamination = {};
};

LoadedWorkload text_workload(const DataOptions& options) {
  LoadedWorkload loaded = load_workload(options.workload).value();
  if (loaded.workload.data.kind != DataSpec::Kind::text) {
    fail(loaded.source.placed(
        error(ErrorKind::invalid, "'{}' makes its data up: there are no tokens", options.workload.path)
            .hinted("data.kind: text is what has them"),
        "data.kind"));
  }
  return loaded;
}

Node node_of(const SplitTokens& split) {
  return Node::map({{"documents", split.documents},
                    {"tokens", split.tokens},
                    {"text_bytes", split.bytes},
                    {"shards", split.shards.size()}});
}

Node node_of(const TokensManifest& m) {
  return Node::map({{"key", m.key},
                    {"vocabulary", m.vocabulary},
                    {"train", node_of(m.train)},
                    {"held_out", node_of(m.held_out)},
                    {"empty_documents", m.empty},
                    {"replaced_utf8", m.replaced},
                    {"cut_pairs", m.cut},
                    {"skipped_records", m.skipped},
                    {"filtered_records", m.filtered},
                    {"repeated_documents", m.repeated},
                    {"held_out_also_in_train", m.held_out_also_in_train}});
}

std::vector<std::string> cells(const std::string& name, const SplitTokens& split, const LengthStats& lengths) {
  const double bytes = split.tokens > 0 ? static_cast<double>(split.bytes) / static_cast<double>(split.tokens) : 0;
  return {name,
          with_commas(split.documents),
          with_commas(split.tokens),
          with_commas(split.bytes),
          fmt::format("{:.2f}", bytes),
          with_commas(lengths.median),
          with_commas(lengths.p99),
          with_commas(lengths.longest),
          std::to_string(split.shards.size())};
}

std::string text_of(Store& store, const TokensManifest& m, int width) {
  std::vector<std::vector<std::string>> rows{cells("train", m.train, document_lengths(store, m.key, false).value())};
  if (m.held_out.documents > 0)
    rows.push_back(cells("held out", m.held_out, document_lengths(store, m.key, true).value()));
  std::string text = fmt::format("dataset {}  {} in the vocabulary\n", m.key, counted(m.vocabulary, "token"));
  for (const SourceFile& source : m.sources)
    text += fmt::format("  from {}  {}\n", source.path, to_string(source.size));
  text += table({"", "documents>", "tokens>", "text bytes>", "bytes/token>", "median>", "p99>", "longest>", "shards>"},
                rows, width);
  if (m.empty > 0) text += fmt::format("{} empty documents were passed over\n", with_commas(m.empty));
  if (m.replaced > 0) text += fmt::format("{} ill-formed parts of UTF-8 were replaced\n", with_commas(m.replaced));
  if (m.filtered > 0) text += fmt::format("{} left out by `where`\n", counted(m.filtered, "record"));
  if (m.repeated > 0) text += fmt::format("{} left out by `dedupe`\n", counted(m.repeated, "repeated document"));
  if (m.skipped > 0) text += fmt::format("{} skipped\n", counted(m.skipped, "bad record"));
  if (m.cut > 0) text += fmt::format("cut, for they were longer than their rows: {}\n", counted(m.cut, "pair"));
  if (m.held_out_also_in_train > 0) {
    text += fmt::format("{} training documents equal a held-out one\n", with_commas(m.held_out_also_in_train));
  }
  return text;
}

// With buckets, a line for each: its rows, padding, and steps. Else "".
std::string buckets_table(const Workload& workload, const EpochRows& rows, int width) {
  if (rows.buckets.empty()) return "";
  std::vector<std::vector<std::string>> cells;
  for (const Bucket& bucket : rows.buckets)
    cells.push_back({with_commas(bucket.edge), with_commas(bucket.rows),
                     fmt::format("{:.1f}%", 100 * padding_share(bucket.tokens, bucket.positions())),
                     with_commas(rows_of_bucket(workload.train.batch, rows.length, bucket.edge)),
                     with_commas(steps_of(workload, bucket))});
  return table({"bucket up to>", "rows>", "padding>", "rows a step>", "steps>"}, cells, width);
}

// Of the run's steps, or of an epoch; nothing: not a mixture.
std::optional<MixtureDrawing> mixture_drawing(const Data& data, const Workload& workload) {
  if (!data.mixture) return std::nullopt;
  return drawing_of(*data.mixture, workload, static_cast<double>(workload.train.steps.value_or(0)));
}

// Of a mixture, the sources' datasets and their table; else the dataset.
std::string text_of(const Data& data, const std::optional<MixtureDrawing>& drawing, const Workload& workload,
                    int width) {
  if (!data.mixture) return text_of(*data.folder, data.dataset->manifest, width);
  std::string text;
  for (std::size_t s = 0; s < data.mixture->parts.size(); ++s)
    text += fmt::format("source {}: ", data.mixture->options.sources[s].name) +
            text_of(*data.folder, data.mixture->parts[s].manifest, width) + "\n";
  return text + mixture_table(*data.mixture, *drawing, workload, width);
}

Node node_of(const Data& data, const std::optional<MixtureDrawing>& drawing) {
  Node node = node_of(data.dataset->manifest);
  if (drawing) node.set("mixture", mixture_node(*data.mixture, *drawing));
  return node;
}

ExitCode data_build(const DataOptions& options, Context& context) {
  const LoadedWorkload loaded = text_workload(options);
  const Workload& workload = loaded.workload;
  const Seconds began = context.clock.now();
  SignalWatch signals;
  signals.end_at_once();  // complete parts are kept
  const PrepareOptions preparing = prepare_options(options.workload, loaded, context).value();
  const Data data = prepare_data(workload, loaded.source, preparing.data).value();
  context.out.end_progress();
  if (const auto damaged = damaged_objects(data, workload)) context.out.warning(*damaged);
  const std::optional<MixtureDrawing> drawing = mixture_drawing(data, workload);
  context.out.prose(text_of(data, drawing, workload, context.out.width()));
  Node made = Node::sequence();
  for (const std::string& what : data.dataset->built) made.push(what);
  Node node = node_of(data, drawing);
  if (!data.mixture) {
    const EpochRows rows = rows_of(workload, data.dataset->train->packing);
    context.out.prose(buckets_table(workload, rows, context.out.width()) + to_string(rows) + "\n");
    node.set("epoch", to_node(rows));
  }
  if (const auto cache = cache_of(data)) node.set("cache", to_node(*cache));
  const DataTimes times = times_of(data);
  node.set("seconds", Node::map({{"list", times.list.count()},
                                 {"fetch", times.fetch.count()},
                                 {"build", times.build.count()},
                                 {"open", times.open.count()}}));
  context.out.json(node.set("made", made));
  if (const std::string cache = told_cache(data); !cache.empty()) context.out.message("objects of data: " + cache);
  context.out.message(data.dataset->built.empty() ? "all of it was there already"
                                                  : fmt::format("made in {}: {}", workload.data.folder,
                                                                to_string(context.clock.now() - began)));
  return ExitCode::done;
}

struct DataFolder {
  std::unique_ptr<Store> store;
  std::vector<std::string> keys;
};
DataFolder open_data(const Workload& workload, const DataOptions& options) {
  const std::string hint = "systole data build " + words_of(options.workload);
  auto store = open_posix_store(workload.data.folder);
  if (!store.ok()) fail(error(ErrorKind::not_found, "there is no data in '{}'", workload.data.folder).hinted(hint));
  DataFolder folder{std::move(*store), {}};
  folder.keys = list_datasets(*folder.store).value();
  if (folder.keys.empty())
    fail(error(ErrorKind::not_found, "there is no dataset in '{}'", workload.data.folder).hinted(hint));
  return folder;
}

// What `show` prints: of a dataset, or of the datasets of named sources.
struct Shown {
  std::string text;
  Node node;
  Node epoch = {};  // of a dataset
};

ExitCode show(Shown shown, const DataOptions& options, const LoadedWorkload& loaded, Context& context) {
  const ContaminationShown shared = contamination_shown(options.contamination, loaded, context);
  if (!shared.text.empty()) {
    shown.text += "\n" + shared.text;
    shown.node.set("contamination", shared.node);
  }
  context.out.prose(shown.text);
  Node all = Node::map({{"folder", loaded.workload.data.folder}, {"datasets", Node::sequence({shown.node})}});
  if (!shown.epoch.is_null()) all.set("epoch", shown.epoch);
  context.out.json(all);
  return ExitCode::done;
}

// Opens the datasets of a mixture's sources; builds nothing.
ExitCode mixture_show(const DataOptions& options, const LoadedWorkload& loaded, Context& context) {
  DataRequest request;
  request.only_open = true;
  Result<Data> data = prepare_data(loaded.workload, loaded.source, request);
  if (!data.ok() && data.error().kind == ErrorKind::not_found && data.error().where.line == 0)
    fail(std::move(data).error().hinted("systole data build " + words_of(options.workload)));
  data.value();
  const std::optional<MixtureDrawing> drawing = mixture_drawing(*data, loaded.workload);
  return show({text_of(*data, drawing, loaded.workload, context.out.width()), node_of(*data, drawing)}, options, loaded,
              context);
}

// Shows the dataset of this workload's text, among all in the folder.
ExitCode data_show(const DataOptions& options, Context& context) {
  const LoadedWorkload loaded = text_workload(options);
  const Workload& workload = loaded.workload;
  DataFolder folder = open_data(workload, options);
  if (!workload.data.mixture.sources.empty()) return mixture_show(options, loaded, context);
  const std::string key = dataset_key_of(workload, loaded.source).value();
  if (std::find(folder.keys.begin(), folder.keys.end(), key) == folder.keys.end()) {
    fail(error(ErrorKind::not_found, "the data of '{}' is not built: '{}' holds {} of other text or options",
               options.workload.path, workload.data.folder, counted(folder.keys.size(), "dataset"))
             .hinted("systole data build " + words_of(options.workload)));
  }
  TokensManifest manifest = read_tokens_manifest(*folder.store, key).value();
  const BuiltData data{std::move(folder.store), std::move(manifest)};
  const EpochRows rows = rows_of(workload, data).value();
  return show({text_of(*data.folder, data.manifest, context.out.width()) +
                   buckets_table(workload, rows, context.out.width()) + to_string(rows) + "\n",
               node_of(data.manifest), to_node(rows)},
              options, loaded, context);
}

ExitCode data_verify(const DataOptions& options, Context& context) {
  if (is_staged_place(options.workload.path)) return verify_staged(options.workload.path, context);
  const Workload workload = text_workload(options).workload;
  const DataFolder folder = open_data(workload, options);
  Node list = Node::sequence();
  ExitCode exit = ExitCode::done;
  for (const std::string& key : folder.keys) {
    const Result<Bytes> read = verify_dataset(*folder.store, key);
    list.push(Node::map({{"key", key},
                         {"well", read.ok()},
                         {"bytes_read", read.ok() ? read->count() : 0},
                         {"error", read.ok() ? Node() : error_node(read.error())}}));
    if (read.ok()) {
      context.out.data(fmt::format("dataset {}: OK, {} read", key, to_string(*read)));
    } else {
      context.out.data(fmt::format("dataset {}: damaged: {}", key, to_string(read.error())));
      exit = ExitCode::no;
    }
  }
  context.out.json(Node::map({{"folder", workload.data.folder}, {"datasets", list}}));
  return exit;
}

}  // namespace

void add_data(Subcommand app, Context& context) {
  Subcommand group = add_group(app, "data", "the tokens that a workload's text becomes");
  const auto add = [&](const char* name, const char* help, ExitCode (*run)(const DataOptions&, Context&)) {
    auto options = std::make_shared<DataOptions>();
    Subcommand command = add_command(group, name, help, options, context, run);
    add_workload_arguments(command, options->workload);
    if (run == data_show) add_contamination_arguments(command, options->contamination);
  };
  add("build", "split, train the tokenizer, encode, pack; what is there already is kept", data_build);
  add("show", "documents, tokens and lengths of what the workload's text became", data_show);
  add_data_pack(group, context);
  add_data_cat(group, context);
  add_data_bigquery(group, context);
  add_data_move(group, context);
  add_data_probe(group, context);
  add_data_lengths(group, context);
  add("verify", "read every byte, and its checksum, of all datasets in the workload's folder, or of a staged folder",
      data_verify);
}

}  // namespace systole::cli

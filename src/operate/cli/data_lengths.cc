// `systole data lengths WORKLOAD|FILE`: how long the texts are, how much of their rows is padding, and which buckets
// waste the least; of a workload's dataset, or of a histogram in a file.

#include "operate/cli/data_lengths.h"

#include <algorithm>

#include "describe/lengths/length_charts.h"
#include "describe/lengths/length_report.h"
#include "describe/lengths/read_lengths.h"
#include "ground/base/counted.h"
#include "ground/base/number_from.h"
#include "ground/base/text_file.h"
#include "operate/cli/workload_options.h"
#include "operate/run/built_data.h"
#include "operate/run/row_flops.h"

namespace systole::cli {
namespace {

constexpr std::int64_t kMostShapes = 64;    // to keep a waste that is asked for
constexpr std::int64_t kLimitShapes = 256;  // each is a Program, and finding the best ones takes memory for each

struct DataLengthsOptions {
  WorkloadArguments workload;
  std::vector<std::int64_t> edges;
  std::string waste, svg, plan;
  std::int64_t shapes = 0, align = 1, context = 0;
  bool held_out = false;
};

// What is measured: texts of a dataset or a file.
struct Texts {
  std::string name, noun = "document";
  LengthHistogram lengths;
  std::optional<LengthHistogram> targets;        // of pairs
  std::int64_t longest = 0, longest_target = 0;  // of a row; 0: unknown
  std::optional<Workload> workload;
  std::optional<std::int64_t> packed;  // rows; nothing: they are not packed
  std::optional<EdgesAsked> buckets;   // of the workload; options go before them
};

bool is_histogram(const std::string& path) {
  return path.ends_with(".csv") || path.ends_with(".tsv") || path.ends_with(".txt") || path.ends_with(".json");
}

Texts texts_of_file(const DataLengthsOptions& options) {
  Texts texts;
  texts.name = options.workload.path;
  texts.noun = "text";
  texts.lengths = read_lengths(read_text_file(texts.name).value(), texts.name).value();
  return texts;
}

Texts texts_of_workload(const DataLengthsOptions& options) {
  const LoadedWorkload loaded = load_workload(options.workload).value();
  const Workload& workload = loaded.workload;
  if (workload.data.kind != DataSpec::Kind::text) {
    fail(loaded.source.placed(error(ErrorKind::invalid, "'{}' makes its data up: there are no texts", workload.name)
                                  .hinted("data.kind: text is what has them, or give a file of lengths and counts"),
                              "data.kind"));
  }
  Result<BuiltData> built = find_built_data(workload, loaded.source);
  if (!built.ok() && built.error().kind == ErrorKind::not_found)
    fail(error(ErrorKind::not_found, "the data of '{}' is not built: their lengths in tokens are not known",
               options.workload.path)
             .hinted("systole data build " + words_of(options.workload)));
  const BuiltData data = std::move(built).value();
  Texts texts;
  texts.name = options.workload.path;
  texts.longest = options.context > 0 ? options.context : workload.model.context();
  texts.longest_target = workload.model.target_context();
  if (options.held_out && data.manifest.held_out.documents == 0)
    fail(error(ErrorKind::invalid, "'{}' holds nothing out", texts.name).hinted("leave --held-out out"));
  DatasetLengths lengths = dataset_lengths(*data.folder, data.manifest, options.held_out, texts.longest).value();
  texts.lengths = std::move(lengths.documents);
  texts.targets = std::move(lengths.targets);
  if (texts.targets) texts.noun = "pair";
  if (!texts.targets) texts.packed = lengths.packed_rows;
  if (workload.data.buckets && !texts.targets) texts.buckets = packing_rule(workload.data).edges;
  texts.workload = workload;
  return texts;
}

void check_shapes(std::int64_t shapes) {
  if (shapes <= kLimitShapes) return;
  fail(error(ErrorKind::invalid, "--shapes: {} are more than {}, each a Program to compile", with_commas(shapes),
             kLimitShapes)
           .hinted(fmt::format("--shapes {}", kLimitShapes)));
}

double waste_of(const std::string& text) {
  const bool percent = text.ends_with('%');
  const std::optional<double> number = number_from<double>(percent ? text.substr(0, text.size() - 1) : text);
  const double share = number ? *number / (percent ? 100 : 1) : -1;
  if (!(share >= 0 && share < 1))
    fail(error(ErrorKind::invalid, "--waste: '{}' is no share of positions", text).hinted("--waste 5%"));
  return share;
}

// The edges that were given, checked.
std::vector<std::int64_t> edges_of(const DataLengthsOptions& options, std::int64_t longest) {
  const std::vector<std::int64_t>& edges = options.edges;
  if (edges.empty()) return {};
  if (edges.front() < 1 || std::ranges::adjacent_find(edges, std::greater_equal()) != edges.end())
    fail(error(ErrorKind::invalid, "--edges: {} do not ascend from 1 or above", fmt::join(edges, ","))
             .hinted("--edges 128,256,512"));
  if (edges.back() < longest) {
    fail(error(ErrorKind::invalid, "--edges: rows of up to {} would be in no bucket: the last edge is {}",
               with_commas(longest), edges.back())
             .hinted(fmt::format("--edges {},{}, or --context {}, which cuts longer texts into pieces",
                                 fmt::join(edges, ","), longest, edges.back())));
  }
  return edges;
}

// Those of data.buckets. The context is one where a row needs it.
std::vector<std::int64_t> edges_of_workload(const EdgesAsked& asked, const LengthHistogram& rows,
                                            std::int64_t longest) {
  if (!asked.edges.empty() && asked.edges.back() > longest)
    fail(error(ErrorKind::invalid, "--context: data.buckets has rows of {}", asked.edges.back())
             .hinted("--edges, which are then taken in place of them"));
  std::vector<std::int64_t> edges = bucket_edges(rows, longest, asked);
  if (edges.size() > 1 && edges[edges.size() - 2] >= rows.longest()) edges.pop_back();
  return edges;
}

// Model FLOPs where the model is known; with a plan also time and dollars.
RowPrices prices_of(const DataLengthsOptions& options, const Texts& texts, Context& context) {
  RowPrices prices;
  std::optional<Workload> model = texts.workload;
  if (!options.plan.empty()) {
    const Plan plan = read_plan(read_text_file(options.plan).value(), options.plan).value();
    prices.rate = planned_flop_rate(plan, context.clock).value();
    if (plan.cost && plan.cost->known) prices.dollars_per_hour = plan.cost->dollars_per_hour;
    if (!model) model = plan.workload;
    context.out.message(fmt::format("time of the plan of '{}' on {}, at its rate for rows of {}", plan.workload.name,
                                    plan.cost ? plan.cost->offer : plan.target.name,
                                    with_commas(plan.workload.model.context())));
  }
  if (!model || texts.targets) return prices;
  prices.flops = row_flops(*model, context.clock).value();
  return prices;
}

struct Shown {
  LengthReport report;
  Node node;
};

// Reports one side: the texts, or the targets of pairs.
Shown show(const LengthHistogram& lengths, const std::string& head, std::int64_t longest, const Texts& texts,
           const DataLengthsOptions& options, const RowPrices& prices, Context& context) {
  LengthRequest request;
  request.longest = longest;
  request.edges = edges_of(options, std::min(longest, lengths.longest()));
  if (texts.buckets && options.edges.empty() && options.waste.empty() && options.shapes == 0)
    request.edges = edges_of_workload(*texts.buckets, lengths.in_pieces(longest), longest);
  if (!options.waste.empty()) request.best = {.shapes = kMostShapes, .waste = waste_of(options.waste)};
  if (options.shapes > 0) request.best.shapes = options.shapes;
  if (options.shapes > 0 && options.waste.empty()) request.best.waste.reset();
  request.best.align = options.align;
  request.packed = texts.packed;
  request.prices = prices;
  Shown shown{length_report(lengths, request), {}};
  const int width = context.out.width();
  context.out.prose(fmt::format("{}: {}, {}: {}\n", head, counted(lengths.count(), texts.noun),
                                counted(lengths.tokens(), "token"), length_stats(lengths)));
  if (lengths.longest() > longest && !texts.targets)
    context.out.prose(fmt::format("cut into {} of at most {}: {}\n", counted(shown.report.rows.count(), "piece"),
                                  with_commas(longest), length_stats(shown.report.rows)));
  context.out.data(length_drawing(shown.report.rows));
  context.out.data("\n" + buckets_text(shown.report, width));
  context.out.prose(by_shapes_text(shown.report));
  context.out.data("\n" + ways_text(shown.report, width));
  shown.node = to_node(shown.report);
  return shown;
}

ExitCode data_lengths(const DataLengthsOptions& options, Context& context) {
  check_shapes(options.shapes);
  if (!options.svg.empty()) check_writable(options.svg).value();
  Texts texts = is_histogram(options.workload.path) ? texts_of_file(options) : texts_of_workload(options);
  if (texts.longest == 0) {
    const std::int64_t last = options.edges.empty() ? 0 : options.edges.back();
    texts.longest = options.context > 0 ? options.context : std::max(texts.lengths.longest(), last);
    texts.packed = packed_rows(texts.lengths, texts.longest);
  }
  const RowPrices prices = prices_of(options, texts, context);
  const std::string name = texts.name + (options.held_out ? ", held out" : "");
  Shown shown =
      show(texts.lengths, texts.targets ? name + ", inputs" : name, texts.longest, texts, options, prices, context);
  Node node = std::move(shown.node);
  double waste = shown.report.waste();
  if (texts.targets) {
    context.out.data("\n");
    const Shown targets =
        show(*texts.targets, name + ", targets", texts.longest_target, texts, options, prices, context);
    node.set("targets", targets.node);
    waste = std::max(waste, targets.report.waste());
  }
  context.out.json(node);
  if (!options.svg.empty()) {
    write_text_file(options.svg,
                    length_svg(shown.report.rows, shown.report.edges,
                               fmt::format("{}: lengths of {}", name, counted(shown.report.rows.count(), "row"))))
        .value();
    context.out.message("written: " + options.svg);
  }
  if (options.waste.empty() || waste <= waste_of(options.waste)) return ExitCode::done;
  context.out.message(fmt::format("more than {} is padding", options.waste));
  return ExitCode::no;
}

}  // namespace

void add_data_lengths(Subcommand group, Context& context) {
  auto options = std::make_shared<DataLengthsOptions>();
  Subcommand command = add_command(
      group, "lengths",
      "lengths of a workload's texts, or of a .csv or .json of them: padding, and the buckets that waste least",
      options, context, data_lengths);
  add_workload_arguments(command, options->workload);
  command
      .add_option("--edges", options->edges,
                  "these buckets, as 128,256,512, in place of the workload's or the best ones")
      .delimiter(',')
      .check(at_least(1));
  command.add_option("--waste", options->waste,
                     "the fewest buckets with at most so much padding, 5% as usual; given, more of it is exit code 1");
  command.add_option("--shapes", options->shapes, "at most so many buckets; 16 as usual, with --waste 64")
      .check(at_least(1));
  command.add_option("--align", options->align, "edges are multiples of this: 8, or 128 for a TPU").check(at_least(1));
  command.add_option("--context", options->context, "tokens of the longest row; longer texts are cut into pieces")
      .check(at_least(1));
  command.add_flag("--held-out", options->held_out, "of the held-out documents");
  command.add_option("--plan", options->plan,
                     "what systole plan --out wrote: time and dollars of an epoch at its rate");
  command.add_option("--svg", options->svg, "also write the distribution, with the buckets, as a picture");
}

}  // namespace systole::cli

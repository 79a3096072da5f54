#include "describe/lengths/length_report.h"

#include "ground/base/counted.h"
#include "ground/draw/text_table.h"

namespace systole {
namespace {

constexpr double kMost = 0.95;  // of the rows
constexpr std::int64_t kMostShapes = 32;

std::string percent(double share) {
  return share == 0 ? "0%" : fmt::format("{:.{}f}%", 100 * share, share < 0.01 ? 2 : 1);
}

void price(LengthWay& way, const RowPrices& prices) {
  if (!prices.flops) return;
  double flops = 0;
  for (const Bucket& bucket : way.buckets)
    if (bucket.rows > 0) flops += static_cast<double>(bucket.rows) * prices.flops(bucket.edge);
  way.flops = flops;
  if (!prices.rate) return;
  way.time = Seconds(flops / prices.rate->count());
  if (prices.dollars_per_hour) way.dollars = *prices.dollars_per_hour * *way.time;
}

Node node_of(const LengthWay& way, std::int64_t tokens) {
  Node buckets = Node::sequence();
  for (const Bucket& bucket : way.buckets)
    buckets.push(Node::map({{"edge", bucket.edge}, {"rows", bucket.rows}, {"tokens", bucket.tokens}}));
  Node node = Node::map({{"way", way.name},
                         {"rows", way.rows()},
                         {"positions", way.positions()},
                         {"padding_share", padding_share(tokens, way.positions())},
                         {"buckets", std::move(buckets)}});
  if (way.flops) node.set("model_flops", *way.flops);
  if (way.time) node.set("seconds", way.time->count());
  if (way.dollars) node.set("dollars", way.dollars->count());
  return node;
}

}  // namespace

std::int64_t LengthWay::rows() const {
  std::int64_t rows = 0;
  for (const Bucket& bucket : buckets) rows += bucket.rows;
  return rows;
}

std::int64_t LengthWay::positions() const {
  std::int64_t positions = 0;
  for (const Bucket& bucket : buckets) positions += bucket.positions();
  return positions;
}

LengthReport length_report(const LengthHistogram& texts, const LengthRequest& request) {
  CHECK(texts.count() > 0 && request.longest >= 1, "{} in rows of {}", counted(texts.count(), "text"), request.longest);
  LengthReport report;
  report.longest = request.longest;
  report.rows = texts.in_pieces(request.longest);
  report.edges = request.edges;
  if (report.edges.empty()) {
    EdgeRequest best = request.best;
    best.longest = request.longest;
    report.edges = best_edges(report.rows, best);
  }
  const LengthHistogram& rows = report.rows;
  for (std::int64_t shapes = 1; shapes <= kMostShapes; shapes *= 2) {
    const std::vector<std::int64_t> edges =
        best_edges(rows, {.shapes = shapes, .align = request.best.align, .longest = request.longest});
    const double share = padding_share(buckets_of(rows, edges));
    if (!report.by_shapes.empty() && share == report.by_shapes.back().second) break;  // more do not help
    report.by_shapes.emplace_back(shapes, share);
  }
  if (request.packed) report.ways.push_back({"packed", {{request.longest, *request.packed, rows.tokens()}}});
  report.bucketed = report.ways.size();
  report.ways.push_back({counted(report.edges.size(), "bucket"), buckets_of(rows, report.edges)});
  report.ways.push_back(
      {"powers of two", buckets_of(rows, power_of_two_edges(rows, request.best.align, request.longest))});
  report.ways.push_back(
      {fmt::format("padded to {}", with_commas(request.longest)), {{request.longest, rows.count(), rows.tokens()}}});
  for (LengthWay& way : report.ways) price(way, request.prices);
  return report;
}

std::string length_stats(const LengthHistogram& texts) {
  return fmt::format("mean {:.1f}, median {}, p90 {}, p99 {}, longest {}", texts.mean(),
                     with_commas(texts.quantile(0.5)), with_commas(texts.quantile(0.9)),
                     with_commas(texts.quantile(0.99)), with_commas(texts.longest()));
}

std::string by_shapes_text(const LengthReport& report) {
  std::vector<std::string> words;
  for (const auto& [shapes, share] : report.by_shapes) words.push_back(fmt::format("{} {}", shapes, percent(share)));
  return fmt::format("least padding by the number of buckets: {}\n", fmt::join(words, ", "));
}

std::string ways_text(const LengthReport& report, int width) {
  const LengthWay& first = report.ways.front();
  std::vector<std::string> headers{"an epoch", "shapes>", "rows>", "positions>", "padding>"};
  if (first.flops) headers.emplace_back("model FLOPs>");
  if (first.time) headers.emplace_back("time>");
  if (first.dollars) headers.emplace_back("dollars>");
  std::vector<std::vector<std::string>> rows;
  for (const LengthWay& way : report.ways) {
    rows.push_back({way.name, std::to_string(way.buckets.size()), with_commas(way.rows()), with_commas(way.positions()),
                    percent(padding_share(report.rows.tokens(), way.positions()))});
    if (way.flops) rows.back().push_back(fmt::format("{:.3g}", *way.flops));
    if (way.time) rows.back().push_back(to_string(*way.time));
    if (way.dollars) rows.back().push_back(to_string(*way.dollars));
  }
  return table(headers, rows, width);
}

std::string buckets_text(const LengthReport& report, int width) {
  const std::span<const Bucket> buckets = report.buckets();
  std::vector<std::vector<std::string>> rows;
  for (const Bucket& bucket : buckets) {
    const double share = static_cast<double>(bucket.rows) / static_cast<double>(report.rows.count());
    rows.push_back({with_commas(bucket.edge), with_commas(bucket.rows), percent(share),
                    percent(padding_share(bucket.tokens, bucket.positions()))});
  }
  return table({"bucket up to>", "rows>", "of all>", "padding>"}, rows, width) +
         fmt::format("95% of the rows are in {}; {} of the positions are padding\n",
                     counted(buckets_holding(buckets, kMost), "bucket"), percent(report.waste()));
}

Node to_node(const LengthReport& report) {
  Node edges = Node::sequence(), shapes = Node::sequence(), ways = Node::sequence(), lengths = Node::sequence();
  for (const std::int64_t edge : report.edges) edges.push(edge);
  for (const auto& [number, share] : report.by_shapes)
    shapes.push(Node::map({{"shapes", number}, {"padding_share", share}}));
  for (const LengthWay& way : report.ways) ways.push(node_of(way, report.rows.tokens()));
  for (const auto& [length, count] : report.rows.counts()) lengths.push(Node::sequence({length, count}));
  return Node::map({{"longest", report.longest},
                    {"rows", report.rows.count()},
                    {"tokens", report.rows.tokens()},
                    {"edges", std::move(edges)},
                    {"waste", report.waste()},
                    {"buckets_for_95_percent", buckets_holding(report.buckets(), kMost)},
                    {"by_shapes", std::move(shapes)},
                    {"ways", std::move(ways)},
                    {"lengths", std::move(lengths)}});
}

}  // namespace systole

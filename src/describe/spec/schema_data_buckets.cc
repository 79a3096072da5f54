// Keys of `data.buckets`: rows of a few lengths in place of one.
#include <fmt/ranges.h>

#include <algorithm>

#include "describe/spec/codec_parts.h"
#include "describe/spec/schema.h"

namespace systole {
namespace {

constexpr std::int64_t kMostShapes = 64, kLongestEdge = std::int64_t{1} << 31;

Status read_buckets(const Node& node, Workload& w) {
  constexpr const char* kWanted = "auto, or a list of row lengths such as [64, 128, 256]";
  if (is(node, "auto")) {
    w.data.buckets = BucketsSpec{.automatic = true};
    return Done{};
  }
  if (!node.is_sequence() || node.items().empty()) return nearly(node, node.wrong(kWanted), {"auto"});
  BucketsSpec buckets;
  for (const Node& item : node.items()) {
    const std::int64_t edge = TRY(read_count(item, 1, kLongestEdge));
    if (!buckets.edges.empty() && edge <= buckets.edges.back()) {
      return error(ErrorKind::invalid, "{} comes after {}: the lengths must ascend", edge, buckets.edges.back())
          .at(item.where())
          .hinted("each length once, the shortest first");
    }
    buckets.edges.push_back(edge);
  }
  if (buckets.edges.size() > static_cast<std::size_t>(kMostShapes)) {
    return error(ErrorKind::invalid, "{} lengths: each is compiled and planned as a program of its own",
                 buckets.edges.size())
        .at(node.where())
        .hinted(fmt::format("{} at most", kMostShapes));
  }
  w.data.buckets = std::move(buckets);
  return Done{};
}

Node buckets_node(Workload& w) {
  if (!w.data.buckets) return {};
  return w.data.buckets->automatic ? Node("auto") : list_node(w.data.buckets->edges);
}

}  // namespace

void check_buckets(const Workload& w, std::vector<BrokenRule>& broken) {
  const auto& buckets = w.data.buckets;
  if (!buckets) return;
  const auto refuse = [&](std::vector<std::string> keys, ErrorKind kind, std::string message, std::string hint) {
    broken.push_back({std::move(keys), kind, std::move(message), std::move(hint)});
  };
  if (w.model.task() == Task::pairs)
    return refuse({"data.buckets", "model.family"}, ErrorKind::unsupported,
                  "data.buckets: pairs have rows of two lengths, and no buckets", "take data.buckets out");
  if (!w.data.mixture.sources.empty())
    return refuse({"data.buckets", "data.mixture.sources"}, ErrorKind::unsupported,
                  "data.buckets: the order of a mixture is by rows, and a step with buckets takes rows of one length",
                  "take data.buckets out, or train on one source");
  if (w.data.packing)
    refuse({"data.packing", "data.buckets"}, ErrorKind::invalid,
           "data.packing fills rows with several documents, and with data.buckets a row has one",
           "take data.packing out, or data.buckets");
  const std::int64_t context = w.model.context();
  if (context > 0 && !buckets->edges.empty() && buckets->edges.back() > context)
    refuse({"data.buckets", "model.context"}, ErrorKind::invalid,
           fmt::format("data.buckets: rows of {} for a model of context {}", buckets->edges.back(), context),
           fmt::format("lengths of {} at most, or model.context: {}", context, buckets->edges.back()));
}

void add_bucket_keys(Schema& schema) {
  const Condition automatic{"data.buckets", {"auto"}};
  auto& keys = schema.keys;
  keys.push_back({.path = "data.buckets",
                  .codec = {.type = "auto, or list of counts", .read = read_buckets, .write = buckets_node},
                  .doc = "Lengths of rows: a step's rows all have one of them, the least that holds their documents.",
                  .more = "auto: the lengths with the least padding. Each row holds one piece of a document. A step "
                          "of short rows has more of them. Longer documents than the last length have rows of "
                          "model.context.",
                  .optional = true,
                  .when = {"data.kind", {"text"}}});
  keys.push_back({.path = "data.waste",
                  .codec = fraction_codec(AT(data.buckets->waste)),
                  .doc = "With buckets: auto, the share of padding: as few lengths as keep to it.",
                  .default_yaml = "5%",
                  .when = automatic});
  keys.push_back({.path = "data.shapes",
                  .codec = count_codec(AT(data.buckets->shapes), 1, kMostShapes),
                  .doc = "With buckets: auto, the most lengths; each is a program of its own.",
                  .default_yaml = "8",
                  .when = automatic});
}

}  // namespace systole

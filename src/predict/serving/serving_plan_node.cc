#include "predict/serving/serving_plan_text.h"

namespace systole {
namespace {

Node bounded_node(const BoundedNumber& number) {
  Node interval = Node::sequence();
  interval.push(number.low);
  interval.push(number.high);
  return Node::map({{"value", number.value}, {"interval_95", std::move(interval)}});
}

Node outcome_node(const ServingOutcome& outcome) {
  return Node::map({{"requests", outcome.requests},
                    {"refused", outcome.refused},
                    {"too_long", outcome.too_long},
                    {"requests_per_second", outcome.requests_per_second},
                    {"tokens_per_second", outcome.tokens_per_second},
                    {"busy_share", outcome.busy},
                    {"queue_mean_seconds", bounded_node(outcome.queue_mean)},
                    {"ttft_p50_seconds", bounded_node(outcome.ttft_p50)},
                    {"ttft_p95_seconds", bounded_node(outcome.ttft_p95)},
                    {"tpot_p50_seconds", bounded_node(outcome.tpot_p50)},
                    {"tpot_p95_seconds", bounded_node(outcome.tpot_p95)}});
}

Node times_node(const ServedTimes& priced) {
  if (priced.unknown) return Node::map({{"unknown", *priced.unknown}});
  const auto by_size = [](const char* size, const ServingTimes::BySize& times) {
    Node all = Node::sequence();
    for (const auto& [bucket, time] : times) all.push(Node::map({{size, bucket}, {"seconds", time.count()}}));
    return all;
  };
  return Node::map(
      {{"prefill", by_size("tokens", priced.times.prefill)}, {"decode", by_size("sequences", priced.times.decode)}});
}

Node row_node(const ServingPlan& plan, const ServingRow& row) {
  const ServingMemory& m = row.memory;
  const Node memory = Node::map({{"parameters", m.parameters.count()},
                                 {"cache", m.cache.count()},
                                 {"cache_of_a_slot", m.cache.count() / plan.options.slots},
                                 {"rest", m.rest.count()},
                                 {"outside", m.outside.count()},
                                 {"total", m.total().count()},
                                 {"limit", m.limit.count()}});
  const std::optional<Seconds> load = row.load();
  Node start;  // what is known of it, with the names of `systole serve --json`
  if (load) start = Node::map({{"weights_s", load->count()}, {"first_token_s", plan.first_token(row).count()}});
  return Node::map({{"name", row.name},
                    {"target", row.offer ? Node(row.offer->target) : Node()},
                    {"accelerator", row.offer ? Node(row.offer->accelerator) : Node()},
                    {"devices", row.devices},
                    {"replica_devices", row.parts},
                    {"dollars_per_hour", row.price ? Node(row.price->count()) : Node()},
                    {"zone", row.offer && !row.offer->zone.empty() ? Node(row.offer->zone) : Node()},
                    {"calibrated", row.calibrated},
                    {"fits", m.fits()},
                    {"memory_bytes", memory},
                    {"times", times_node(row.priced)},
                    {"most_load", row.carries() ? Node(row.capacity->load) : Node()},
                    {"at_most_load", row.carries() ? outcome_node(row.capacity->outcome) : Node()},
                    {"at_least_load", row.capacity && !row.carries() ? outcome_node(row.capacity->outcome) : Node()},
                    {"replicas", row.carries() ? Node(row.replicas) : Node()},
                    {"machines", row.carries() ? Node(row.machines()) : Node()},
                    {"at_asked_load", row.asked ? outcome_node(*row.asked) : Node()},
                    {"dollars_per_million_tokens", row.per_million ? Node(row.per_million->count()) : Node()},
                    {"load_seconds", load ? Node(load->count()) : Node()},
                    {"start", std::move(start)},
                    {"lost", row.lost.empty() ? Node() : Node(row.lost)}});
}

}  // namespace

Node serving_plan_node(const ServingPlan& plan) {
  Node rows = Node::sequence(), left_out = Node::sequence();
  for (const ServingRow& row : plan.rows) rows.push(row_node(plan, row));
  for (const auto& [accelerator, why] : plan.left_out)
    left_out.push(Node::map({{"accelerator", accelerator}, {"why", why}}));
  const TrafficSpec& traffic = plan.workload.serve.traffic;
  return Node::map({{"serving", Node::map({{"workload", to_node(plan.workload)},
                                           {"parameters", plan.parameters},
                                           {"slots", plan.options.slots},
                                           {"context", plan.options.cache},
                                           {"load_is_of", !plan.trace.empty() ? "trace speed"
                                                          : traffic.users     ? "users"
                                                                              : "requests per second"},
                                           {"asked_load", plan.asked},
                                           {"rows", std::move(rows)},
                                           {"left_out", std::move(left_out)}})}});
}

}  // namespace systole

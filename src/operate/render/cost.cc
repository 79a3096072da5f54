#include "operate/render/cost.h"

#include "operate/render/cluster_job.h"

namespace systole {
namespace {

std::vector<const PriceRow*> pointers(std::span<const PriceRow> rows) {
  std::vector<const PriceRow*> all;
  all.reserve(rows.size());
  for (const PriceRow& row : rows) all.push_back(&row);
  return all;
}

// One node, or one slice with all its hosts.
Price price_of_one(const RenderRequest& ask, const ClusterJob& job, const std::string& machine,
                   const std::string& region, const std::string& zone, Provisioning terms) {
  const std::vector<const PriceRow*> rows = pointers(ask.facts.prices);
  const auto price = [&](PriceOf of, std::string_view item, std::int64_t count, std::string_view slices,
                         std::string words) {
    const PriceQuery query{of, item, region, zone, slices, count, terms};
    return price_of(find_price_row(rows, query), query, std::move(words));
  };
  if (job.slice) {
    const TpuSlice& slice = *job.slice;
    const bool by_class = slice.accelerator == "v2" || slice.accelerator == "v3";
    return price(PriceOf::chip, slice.accelerator, slice.chips,
                 !by_class          ? ""
                 : slice.hosts == 1 ? "device"
                                    : "pod",
                 slice.by_shape());
  }
  Price host = price(PriceOf::machine, machine, 1, "", machine);
  // Lists have prices on demand of machines that are not had so.
  const MachineType* type = type_named(ask.facts.machines, machine);
  if (std::string why = type == nullptr ? "" : type->not_had_by(terms); !why.empty()) {
    host.amount.reset();
    host.note = std::move(why);
  }
  if (job.machine == nullptr || job.machine->host.empty()) return host;
  const auto count = static_cast<std::int64_t>(job.machine->accelerators);
  const std::string words = fmt::format("{} x {}", count, job.machine->accelerator);
  return sum(host, price(PriceOf::gpu, job.machine->accelerator, count, "", words));
}

std::string counted(std::int64_t least, std::int64_t most, const Price& each) {
  return fmt::format("{} x {}", least == most ? std::to_string(most) : fmt::format("{} to {}", least, most), each.of);
}

std::string words_of(Provisioning terms) {
  return terms == Provisioning::on_demand ? "on demand" : terms == Provisioning::spot ? "spot" : "flex-start";
}

std::string line_of(const JobCost& cost, const Price& price) {
  const std::string terms = words_of(price.provisioning);
  if (!price.known())
    return fmt::format("{} in {}: unknown {}: {}", counted(cost.least, cost.most, price), price.region, terms,
                       price.note.empty() ? "the list has no amount" : price.note);
  std::string line = fmt::format("{} in {}: ", counted(cost.least, cost.most, price), price.region);
  if (cost.least != cost.most) line += to_string(*cost.rate(price, cost.least)) + " to ";
  line += to_string(*cost.rate(price, cost.most)) + " " + terms;
  if (const std::optional<Dollars> total = cost.total(price))
    line += fmt::format("; {} {}: {}{}", to_string(*cost.time),
                        cost.planned   ? "as planned"
                        : cost.bounded ? "at most at once"
                                       : "if it takes resources.longest",
                        cost.least == cost.most ? "" : "up to ", to_string(*total));
  return line + fmt::format(" (list of {})", price.dated.date);
}

}  // namespace

std::optional<DollarsPerHour> JobCost::rate(const Price& price, std::int64_t count) const {
  if (!price.known()) return std::nullopt;
  return *price.amount * static_cast<double>(count);
}

std::optional<Dollars> JobCost::total(const Price& price) const {
  if (!price.known() || !time) return std::nullopt;
  return *rate(price, most) * *time;
}

JobCost cost_of(const RenderRequest& ask, const ClusterJob& job, const std::string& machine, const std::string& region,
                const std::string& zone) {
  JobCost cost;
  const bool slices = job.slice && !job.replicas;
  cost.endless = job.replicas.has_value();
  cost.least = slices ? job.slices : job.nodes.least;
  cost.most = slices ? job.slices : job.nodes.most;
  cost.each = price_of_one(ask, job, machine, region, zone, Provisioning::on_demand);
  if (job.terms == Provisioning::spot || job.terms == Provisioning::flex_start)
    cost.terms = price_of_one(ask, job, machine, region, zone, *job.terms);
  if (ask.plan != nullptr && ask.plan->time.run.total().count() > 0) {
    cost.time = ask.plan->time.run.total();
    cost.planned = true;
  } else {
    cost.time = job.longest;
  }
  return cost;
}

std::vector<std::string> cost_lines(const JobCost& cost) {
  std::vector<std::string> lines{line_of(cost, cost.each)};
  if (cost.terms) lines.push_back(line_of(cost, *cost.terms));
  if (!cost.time && !cost.endless)
    lines.push_back("how long it runs is not known: resources.longest, or a plan, says it");
  for (const std::string& what : cost.besides) lines.push_back("unknown: " + what);
  return lines;
}

Node cost_node(const JobCost& cost) {
  const auto price = [&](const Price& of) {
    Node node =
        Node::map({{"of", of.of}, {"region", of.region}, {"provisioning", std::string(name_of(of.provisioning))}});
    node.set("known", of.known());
    if (of.known()) {
      node.set("least_dollars_per_hour", cost.rate(of, cost.least)->count());
      node.set("most_dollars_per_hour", cost.rate(of, cost.most)->count());
      node.set("source", of.dated.source).set("date", of.dated.date);
    }
    if (const auto total = cost.total(of)) node.set("dollars", total->count());
    if (!of.note.empty()) node.set("note", of.note);
    return node;
  };
  Node node = Node::map({{"least", cost.least}, {"most", cost.most}});
  if (cost.time) node.set("seconds", cost.time->count()).set("planned", cost.planned);
  Node prices;
  prices.push(price(cost.each));
  if (cost.terms) prices.push(price(*cost.terms));
  node.set("prices", std::move(prices));
  Node besides = Node::sequence();
  for (const std::string& what : cost.besides) besides.push(what);
  return node.set("unknown", std::move(besides));
}

}  // namespace systole

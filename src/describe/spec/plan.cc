#include "describe/spec/plan.h"

#include "describe/spec/fields.h"

namespace systole {
// Found by argument-dependent lookup from fields.h, hence not in the unnamed namespace.
template <typename F>
static void fields(F& f, PlannedTarget& t) {
  f("name", t.name);
  f("facts", t.facts);
  f("catalog_entry", t.catalog_entry);
  f("catalog_date", t.catalog_date);
  f("catalog_hash", t.catalog_hash);
  f("calibrated", t.calibrated);
}

template <typename F>
static void fields(F& f, PlannedProgram& p) {
  f("hash", p.hash);
  f("actions", p.actions);
  f("devices", p.devices);
  f("parameters", p.parameters);
  f("trainable", p.trainable);
  f("model_flops", p.model_flops);
  f("executed_flops", p.executed_flops);
  f("bytes_moved", p.moved);
  f("bytes_sent", p.sent);
}

template <typename F>
static void fields(F& f, PlannedShape& s) {
  f("row_tokens", s.length);
  f("rows", s.rows);
  f("epoch_steps", s.epoch_steps);
  f("epoch_tokens", s.epoch_tokens);
  f("step_s", s.step);
  f("model_flops", s.model_flops);
  f("executed_flops", s.executed_flops);
  f("bytes_moved", s.moved);
  f("bytes_sent", s.sent);
}

template <typename F>
static void fields(F& f, PlannedMemory& m) {
  f("bytes_by_owner", m.by_owner);
  f("arena_bytes", m.arena);
  f("limit_bytes", m.limit);
}

template <typename F>
static void fields(F& f, PlannedTime& t) {
  f("step_s", t.step);
  f("run_s", t.run);
  f("compute_s_by_kind", t.compute_by_kind);
  f("steps", t.steps);
  f("known_error", t.known_error);
  f("unknown", t.unknown);
}

template <typename F>
static void fields(F& f, PlannedFeed& p) {
  f("rows", p.rows);
  f("row_bytes", p.row_bytes);
  f("nodes", p.nodes);
  f("rows_per_second", p.rows_per_second);
  f("given_rows_per_second", p.given);
  f("readers", p.readers);
  f("queue", p.queue);
  f("processor_share", p.processor_share);
  f("wait_s", p.wait);
  f("source", p.source);
  f("remedy", p.remedy);
  f("unknown", p.unknown);
}

template <typename F>
static void fields(F& f, PlannedCost& c) {
  f("offer", c.offer);
  f("on", c.on);
  f("provisioning", c.provisioning);
  f("zone", c.zone);
  f("price_date", c.price_date);
  f("dollars_per_hour", c.dollars_per_hour);
  f("dollars", c.dollars);
  f("known", c.known);
}

template <typename F>
static void fields(F& f, PlannedLoser& l) {
  f("option", l.option);
  f("reason", l.reason);
  f("edit", l.edit);
}

namespace {

// Fields that are neither structs nor lists of their own.
struct Loose {
  std::vector<std::pair<std::string, std::int64_t>> mesh;
  std::string strategy, made_by, made_at;
  double model_utilisation = 0;
};

template <typename F>
void fields(F& f, Loose& l) {
  f("mesh", l.mesh);
  f("strategy", l.strategy);
  f("model_utilisation", l.model_utilisation);
  f("made_by", l.made_by);
  f("made_at", l.made_at);
}

std::vector<std::string> structs() {
  return {"systole_plan", "workload", "target", "program", "shapes", "memory",
          "total_bytes",  "time",     "feed",   "cost",    "lost",   "search"};
}

Status check_version(const Node& map) {
  const Node* version = map.find("systole_plan");
  if (version == nullptr) {
    return error(ErrorKind::corrupt, "this is no plan: 'systole_plan' is missing")
        .at(map.where())
        .hinted("systole plan writes one");
  }
  const std::int64_t number = TRY(version->as_int());
  if (number >= 1 && number <= kPlanVersion) return Done{};
  return error(ErrorKind::unsupported, "a plan of version {}; this systole reads up to {}", number, kPlanVersion)
      .coded(ErrorCode::newer_version)
      .at(version->where())
      .hinted("plan again, or use a newer systole");
}

template <typename Struct>
Result<Struct> part(const Node& map, const char* name, std::vector<std::string> also = {}) {
  return read_fields<Struct>(*TRY(map.get(name)), std::move(also));
}

Result<Plan> read(const Node& map, const std::string& filename) {
  TRY(check_version(map));
  Plan plan;
  const Loose loose = TRY(read_fields<Loose>(map, structs()));
  plan.mesh = loose.mesh;
  plan.strategy = loose.strategy;
  plan.model_utilisation = loose.model_utilisation;
  plan.made_by = loose.made_by;
  plan.made_at = loose.made_at;
  plan.target = TRY(part<PlannedTarget>(map, "target"));
  plan.program = TRY(part<PlannedProgram>(map, "program"));
  if (const Node* shapes = map.find("shapes"))
    for (const Node& shape : shapes->items()) plan.shapes.push_back(TRY(read_fields<PlannedShape>(shape)));
  plan.memory = TRY(part<PlannedMemory>(map, "memory"));
  plan.time = TRY(part<PlannedTime>(map, "time"));
  if (map.find("feed") != nullptr) plan.feed = TRY(part<PlannedFeed>(map, "feed"));
  if (map.find("cost") != nullptr) plan.cost = TRY(part<PlannedCost>(map, "cost"));
  for (const Node& loser : TRY(map.get("lost"))->items()) plan.lost.push_back(TRY(read_fields<PlannedLoser>(loser)));

  const Node* total = TRY(map.get("total_bytes"));
  if (TRY(total->as_int()) != plan.memory.total().count()) {
    return error(ErrorKind::corrupt, "the owners' bytes sum to {}, not to {}", plan.memory.total().count(),
                 total->text())
        .at(total->where());
  }
  plan.workload = TRY(workload_from(*TRY(map.get("workload")), filename));
  return plan;
}

}  // namespace

Bytes PlannedMemory::total() const {
  Bytes sum{};
  for (const auto& [owner, bytes] : by_owner) sum += bytes;
  return sum;
}

std::vector<double> step_shares(std::span<const PlannedShape> shapes) {
  std::int64_t all = 0;
  for (const PlannedShape& shape : shapes) all += shape.epoch_steps;
  std::vector<double> shares;
  for (const PlannedShape& shape : shapes)
    shares.push_back(all > 0 ? static_cast<double>(shape.epoch_steps) / static_cast<double>(all) : 0);
  if (all == 0 && !shares.empty()) shares.back() = 1;
  return shares;
}

Node to_node(const Plan& plan) {
  Node map = Node::map();
  map.set("systole_plan", kPlanVersion);
  const Node loose = written(Loose{plan.mesh, plan.strategy, plan.made_by, plan.made_at, plan.model_utilisation});
  for (const Node::Entry& entry : loose.entries()) map.set(entry.key, entry.value);
  map.set("target", written(plan.target));
  map.set("program", written(plan.program));
  if (!plan.shapes.empty()) {
    Node shapes = Node::sequence();
    for (const PlannedShape& shape : plan.shapes) shapes.push(written(shape));
    map.set("shapes", std::move(shapes));
  }
  map.set("memory", written(plan.memory));
  map.set("total_bytes", plan.memory.total().count());
  map.set("time", written(plan.time));
  if (plan.feed) map.set("feed", written(*plan.feed));
  if (plan.cost) map.set("cost", written(*plan.cost));
  Node lost = Node::sequence();
  for (const PlannedLoser& loser : plan.lost) lost.push(written(loser));
  map.set("lost", std::move(lost));
  map.set("workload", to_node(plan.workload));
  return map;
}

std::string to_json(const Plan& plan) { return to_json(to_node(plan), 2) + "\n"; }

Result<Plan> read_plan(std::string_view text, const std::string& filename) {
  const Result<Node> map = parse_json(text, filename);
  if (!map.ok()) {
    Error e = map.error();
    e.kind = ErrorKind::corrupt;
    return e;
  }
  if (!map->is_map()) return error(ErrorKind::corrupt, "expected a plan, found {}", map->describe()).at(map->where());
  Result<Plan> plan = read(*map, filename);
  if (plan.ok() || plan.error().kind != ErrorKind::not_found) return plan;
  Error e = std::move(plan).error();
  e.kind = ErrorKind::corrupt;  // a field is missing
  return e;
}

}  // namespace systole

#include "predict/prove/proof.h"

namespace systole::prove {
namespace {

Node to_node(const CompiledMemory& memory) {
  Node node = Node::map({{"arguments_bytes", memory.arguments.count()},
                         {"outputs_bytes", memory.outputs.count()},
                         {"aliased_bytes", memory.aliased.count()},
                         {"temporaries_bytes", memory.temporaries.count()},
                         {"needed_bytes", memory.needed().count()},
                         {"host_bytes", memory.host.count()},
                         {"on_chip_bytes", memory.on_chip.count()}});
  if (memory.limit) node.set("limit_bytes", memory.limit->count());
  return node;
}

Node to_node(const CompiledCollective& collective) {
  return Node::map({{"kind", collective.kind},
                    {"source", collective.source},
                    {"bytes", collective.bytes.count()},
                    {"group", collective.group},
                    {"written", collective.written},
                    {"executed", collective.executed}});
}

Node to_node(const UntimedKind& kind) {
  return Node::map(
      {{"name", kind.name}, {"written", kind.written}, {"executed", kind.executed}, {"bytes", kind.bytes.count()}});
}

Node to_node(const OpCycles& op) { return Node::map({{"op", op.op}, {"cycles", op.cycles}}); }

Node to_node(const StepTime& step) {
  return Node::map({{"total_s", step.total().count()},
                    {"compute_s", step.compute.count()},
                    {"kernels_s", step.kernels.count()},
                    {"collectives_s", step.collectives.count()},
                    {"exposed_s", step.exposed.count()},
                    {"copies_s", step.copies.count()}});
}

// Reads a document, key by key.
class Reader {
 public:
  explicit Reader(const Node& node) : node_(node) {}
  bool has(const char* key) const { return node_.find(key) != nullptr; }

  Status take(const char* key, std::string& text) const {
    text = TRY(TRY(node_.get(key))->as_string());
    return {};
  }
  Status take(const char* key, std::int64_t& number) const {
    number = TRY(TRY(node_.get(key))->as_int());
    return {};
  }
  Status take(const char* key, double& number) const {
    number = TRY(TRY(node_.get(key))->as_double());
    return {};
  }
  Status take(const char* key, bool& yes) const {
    yes = TRY(TRY(node_.get(key))->as_bool());
    return {};
  }
  Status take(const char* key, Bytes& bytes) const {
    bytes = Bytes(TRY(TRY(node_.get(key))->as_int()));
    return {};
  }
  Status take(const char* key, Seconds& seconds) const {
    seconds = Seconds(TRY(TRY(node_.get(key))->as_double()));
    return {};
  }
  template <typename T>
  Status take(const char* key, std::optional<T>& value) const {
    if (!has(key)) return {};
    T found{};
    TRY(take(key, found));
    value = std::move(found);
    return {};
  }
  template <typename Each>
  Status each(const char* key, Each each) const {
    for (const Node& item : TRY(node_.get(key))->items()) TRY(each(Reader(item)));
    return {};
  }
  Result<Reader> inside(const char* key) const { return Reader(*TRY(node_.get(key))); }

 private:
  const Node& node_;
};

Status read(const Reader& from, CompiledMemory& memory) {
  TRY(from.take("arguments_bytes", memory.arguments));
  TRY(from.take("outputs_bytes", memory.outputs));
  TRY(from.take("aliased_bytes", memory.aliased));
  TRY(from.take("temporaries_bytes", memory.temporaries));
  TRY(from.take("host_bytes", memory.host));
  TRY(from.take("on_chip_bytes", memory.on_chip));
  return from.take("limit_bytes", memory.limit);
}

Status read(const Reader& from, StepTime& step) {
  TRY(from.take("compute_s", step.compute));
  TRY(from.take("kernels_s", step.kernels));
  TRY(from.take("collectives_s", step.collectives));
  TRY(from.take("exposed_s", step.exposed));
  return from.take("copies_s", step.copies);
}

Status read(const Reader& from, ExecutedModule& executed) {
  TRY(from.each("collectives", [&](const Reader& item) -> Status {
    CompiledCollective& collective = executed.collectives.emplace_back();
    TRY(item.take("kind", collective.kind));
    TRY(item.take("source", collective.source));
    TRY(item.take("bytes", collective.bytes));
    TRY(item.take("group", collective.group));
    TRY(item.take("written", collective.written));
    return item.take("executed", collective.executed);
  }));
  TRY(from.each("untimed", [&](const Reader& item) -> Status {
    UntimedKind& kind = executed.untimed.emplace_back();
    TRY(item.take("name", kind.name));
    TRY(item.take("written", kind.written));
    TRY(item.take("executed", kind.executed));
    return item.take("bytes", kind.bytes);
  }));
  TRY(from.each("cycles_by_op", [&](const Reader& item) -> Status {
    OpCycles& op = executed.by_op.emplace_back();
    TRY(item.take("op", op.op));
    return item.take("cycles", op.cycles);
  }));
  TRY(from.take("product_flops", executed.product_flops));
  TRY(from.take("cycles", executed.cycles));
  return from.take("timed", executed.timed);
}

}  // namespace

Node to_node(const Proof& proof) {
  Node collectives = Node::sequence(), untimed = Node::sequence(), endless = Node::sequence(), by_op = Node::sequence();
  for (const CompiledCollective& collective : proof.executed.collectives) collectives.push(to_node(collective));
  for (const UntimedKind& kind : proof.executed.untimed) untimed.push(to_node(kind));
  for (const std::string& loop : proof.executed.endless) endless.push(loop);
  for (const OpCycles& op : proof.executed.by_op) by_op.push(to_node(op));
  Node flags = Node::map();
  for (const auto& [name, value] : proof.flags) flags.set(name, value);
  Node node = Node::map({{"slice", proof.slice},
                         {"slice_devices", proof.slice_devices},
                         {"partitions", proof.partitions},
                         {"replicas", proof.replicas},
                         {"compiler", proof.compiler},
                         {"made", proof.made},
                         {"flags", std::move(flags)},
                         {"fits", proof.fits},
                         {"refusal", proof.refusal},
                         {"whole", proof.whole},
                         {"took_s", proof.took.count()},
                         {"took_memory_bytes", proof.took_memory.count()},
                         {"collectives", std::move(collectives)},
                         {"untimed", std::move(untimed)},
                         {"endless", std::move(endless)},
                         {"product_flops", proof.executed.product_flops},
                         {"cycles", proof.executed.cycles},
                         {"cycles_by_op", std::move(by_op)},
                         {"timed", proof.executed.timed}});
  if (proof.memory) node.set("memory", to_node(*proof.memory));
  if (proof.flops) node.set("flops", *proof.flops);
  if (proof.bytes_accessed) node.set("bytes_accessed", *proof.bytes_accessed);
  if (proof.compute) node.set("compute_s", proof.compute->count());
  if (proof.step) node.set("step", to_node(*proof.step));
  return node;
}

Result<Proof> proof_of(const Node& node) {
  Proof proof;
  const Reader from(node);
  TRY(from.take("slice", proof.slice));
  TRY(from.take("slice_devices", proof.slice_devices));
  TRY(from.take("partitions", proof.partitions));
  TRY(from.take("replicas", proof.replicas));
  TRY(from.take("compiler", proof.compiler));
  TRY(from.take("made", proof.made));
  for (const Node::Entry& flag : TRY(node.get("flags"))->entries()) proof.flags[flag.key] = TRY(flag.value.as_string());
  TRY(from.take("fits", proof.fits));
  TRY(from.take("refusal", proof.refusal));
  TRY(from.take("whole", proof.whole));
  TRY(from.take("took_s", proof.took));
  TRY(from.take("took_memory_bytes", proof.took_memory));
  if (from.has("memory")) TRY(read(TRY(from.inside("memory")), proof.memory.emplace()));
  TRY(from.take("flops", proof.flops));
  TRY(from.take("bytes_accessed", proof.bytes_accessed));
  TRY(from.take("compute_s", proof.compute));
  if (from.has("step")) TRY(read(TRY(from.inside("step")), proof.step.emplace()));
  TRY(read(from, proof.executed));
  for (const Node& loop : TRY(node.get("endless"))->items()) proof.executed.endless.push_back(TRY(loop.as_string()));
  return proof;
}

}  // namespace systole::prove

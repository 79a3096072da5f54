#pragma once
// A Program is what one device does, for every device that does the same: functions and actions. perf prices it, sim
// plays it, runtime executes it, stablehlo prints it; none re-derives what another knows.
//
// * Values are what functions hand to each other. Each has a residence and a number of slots (one per microbatch in
// flight);
//   all live in one arena whose offsets are planned here.
// * Functions are graphs of one device. Their inputs and outputs are bound to values by ports; `aliases` say which
// output
//   takes the place of which input; `donated` inputs are dead afterwards. What a function needs inside (activations,
//   workspace) is its scratch, planned from the lifetimes of its values.
// * A schedule is a list of actions: which function, for which chunk of the model and which microbatch, on which
// stream, after
//   which other actions. Accumulation, pipelines and gathers are rows of it.
//
// A Program is plain data; docs/concepts/program.md walks through it. Sizes and offsets are in bytes.

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "describe/graph/ir.h"
#include "describe/graph/op.h"
#include "describe/graph/partition/layout.h"
#include "describe/graph/target.h"
#include "ground/mesh/mesh.h"

namespace systole {

// Who owns a byte of memory.
enum class Residence {
  parameter,  // trained or frozen
  state,      // of the optimizer
  gradient,
  partial_sum,  // of exact training: gradients of some logical shards, until all are added up (partition/exact.h)
  residual,     // from forward to backward, a slot per microbatch in flight
  input,        // written by the host before a schedule runs
  output,       // read by the host after it
  staging,      // snapshots on their way to a checkpoint; outlives the schedule that wrote it
  cache,        // keys and values of serving
  activation,   // inside a function
  workspace,    // scratch of one kernel
};
constexpr int kNumResidences = 11;
const char* name_of(Residence residence);

struct CutValue {
  Type whole;
  Layout layout;  // over the Program's mesh
};

struct ProgramValue {
  std::string name;
  Type type;  // of one slot
  Residence residence = Residence::activation;
  int slots = 1;
  std::optional<Parameter> parameter;  // of a parameter, and of the state that belongs to one
  std::int64_t offset = 0;             // of slot 0 in the arena
  std::int64_t stride = 0;             // bytes from slot to slot: the type's, aligned
  std::optional<CutValue> cut = {};    // of a mesh: what `type` is a device's part of
};

// Which value an input or output of a function is, and which of its slots: by microbatch, microbatch mod slots; by
// slot, the action's slot and `slot` more; else `slot`.
struct Port {
  int value = -1;
  bool by_microbatch = false;
  bool by_slot = false;
  int slot = 0;
  bool operator==(const Port&) const = default;
};
// Two ports of one value that are never one slot.
bool apart(const Port& a, const Port& b);

struct Alias {
  int output;
  int input;
};

// Where a value of a function's graph lies.
struct Location {
  enum class Kind { none, input, output, scratch } kind = Kind::none;
  int index = 0;            // of the graph's input or output
  std::int64_t offset = 0;  // in the scratch
  bool operator==(const Location&) const = default;
};

// Places of all values of a graph. Those of a body speak of the body's own inputs and outputs, which change from
// iteration to iteration; its scratch is the function's.
struct Placement {
  std::vector<Location> values;  // per value; a view lies where its operand does
  struct Inner {
    std::vector<Placement> regions;
    std::vector<Location> carry_twins;  // per carry of a repeat: where every other iteration writes it
    Location workspace;
    Bytes workspace_bytes;
  };
  std::vector<Inner> nodes;  // per node
};

struct Function {
  std::string name;
  Graph graph;
  std::vector<Port> inputs, outputs;  // per input and output of the graph
  std::vector<Alias> aliases;
  std::vector<bool> donated;  // per input: dead afterwards, its place may be used
  Work work;                  // executed, collectives excluded
  Placement placement;
  Bytes scratch;                    // planned
  Bytes activations, workspace;     // of which, at the peak
  std::int64_t scratch_offset = 0;  // in the arena
};

enum class Stream { compute, network, host };
constexpr int kNumStreams = 3;
const char* name_of(Stream stream);

struct Action {
  int function = -1;
  int chunk = 0;  // of the model, in a pipeline
  int microbatch = 0;
  Stream stream = Stream::compute;
  std::vector<int> waits;  // actions of the same schedule that must have ended; the stream's own order is implied
  int slot = 0;            // of the ports that go by it
};

struct Schedule {
  std::string name;  // "train", "evaluate", "snapshot", …
  std::vector<Action> actions;
};

// Which logical shards of the batch a device owns, in exact training (partition/exact.h): microbatches of a shard
// follow each other. Idle turns come first: of a device that owns fewer than another, where forward has collectives.
struct ShardTurns {
  int shards = 0;            // of all devices
  int first = 0, owned = 0;  // this device's
  int idle = 0;              // turns without a shard
  int microbatches = 1;      // of a shard, in training
  std::int64_t rows = 0;     // of a microbatch
  int turns() const { return idle + owned; }
  // In the whole batch the first row of a microbatch among this device's, a shard having so many; -1: of an idle turn.
  std::int64_t first_row(int microbatch, int of_a_shard) const;
};

struct Program {
  std::string name;
  Target target;
  Mesh mesh;  // its axes are longer than 1
  std::vector<ProgramValue> values;
  std::vector<Function> functions;
  std::vector<Schedule> schedules;
  Bytes arena;
  std::optional<ShardTurns> shards = {};  // of exact training

  int value_named(std::string_view name) const;  // Errors: Failure(not_found)
  std::optional<int> find_value(std::string_view name) const;
  const Function& function_named(std::string_view name) const;
  const Schedule& schedule_named(std::string_view name) const;
  const Schedule* find_schedule(std::string_view name) const;
};

// The slot of the port's value that it is in an action; -1: there is no such slot.
int slot_of(const Program& program, const Port& port, const Action& action);

// What a schedule does: its functions' work, each as often as it acts.
Work work_of(const Program& program, const Schedule& schedule);

// Each byte of the arena by the one who owns it. Where values that never live together share a place, it is that of the
// first in the order of Residence; `unused` are gaps that alignment and shapes leave. All of them sum up to the arena.
struct MemoryByOwner {
  std::array<Bytes, kNumResidences> bytes{};
  Bytes unused;
  Bytes operator[](Residence r) const { return bytes[static_cast<std::size_t>(r)]; }
};
MemoryByOwner memory_by_owner(const Program& program);

// Proves the Program, without the planners' help: graphs verify; ports have their values' types; every alias is legal
// (inside the function no read of the input comes after the write, and across actions every other reader of the value
// is ordered before or after the writer); what is read holds what it should (written, by the microbatch that reads it,
// not donated since); no two blocks of a scratch or of the arena that live at one time overlap. Errors:
// Failure(invalid) that names function, action and value.
void verify(const Program& program);

std::string to_text(const Program& program);
// Hex; of everything that decides what is computed, moved and where: all of the text but the name, and the places.
std::string hash_of(const Program& program);

// The key of a node in Target::workspace: op, operand types, attributes.
std::string workspace_key(const Graph& graph, const GraphNode& node);

}  // namespace systole

#pragma once
// A Program states what one device does; devices that do the same share one. It consists of functions, the values that
// they pass to each other, and schedules. perf prices it, the runtime executes it, stablehlo prints it; none of them
// computes again what it states.
//
// * A value has a residence (who owns its bytes) and a number of slots, one per microbatch in flight. All values lie in
//   one arena; their offsets are planned.
// * A function is a graph of one device. Ports bind its inputs and outputs to values. `aliases` say which output takes
//   the place of which input; `donated` inputs are dead afterwards. Its scratch holds activations and workspace; it is
//   planned from the lifetimes of the values inside.
// * A schedule is a list of actions: a function, a chunk of the model, a microbatch, a stream, and the actions that it
//   waits for. Gradient accumulation, pipelines and gathers are rows of this list.
//
// A Program is plain data; docs/concepts/program.md walks through one. Sizes and offsets are in bytes.

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "describe/ir/ir.h"
#include "describe/ir/op.h"
#include "describe/program/layout.h"
#include "describe/program/target.h"
#include "ground/mesh/mesh.h"

namespace systole {

constexpr const char* kPipelineAxis = "pipe";  // mesh axis; each place on it runs one stage

// Who owns a byte of memory.
enum class Residence {
  parameter,  // trained or frozen
  state,      // of the optimizer
  gradient,
  partial_sum,  // exact training: gradients of some logical shards, before all are summed (partition/exact.h)
  residual,     // from forward to backward, a slot per microbatch in flight
  input,        // written by the host before a schedule runs
  output,       // read by the host after it
  staging,      // snapshots on their way to a checkpoint; outlives the schedule that wrote it
  cache,        // KV cache of serving
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
  std::optional<Parameter> parameter;  // set for a parameter, and for the state of one
  std::int64_t offset = 0;             // of slot 0 in the arena
  std::int64_t stride = 0;             // bytes from slot to slot: the size of the type, aligned
  std::optional<CutValue> cut = {};    // on a mesh: the whole value, of which `type` is one device's shard
  Bytes extent() const { return Bytes(stride * slots); }  // of all slots
};

// Binds an input or output of a function to a slot of a value. The slot is microbatch mod slots (by_microbatch), the
// action's slot + `slot` (by_slot), or `slot`.
struct Port {
  int value = -1;
  bool by_microbatch = false;
  bool by_slot = false;
  int slot = 0;
  bool operator==(const Port&) const = default;
};
// True for two ports of one value that never name the same slot.
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

// Locations of all values of a graph. Inputs and outputs in a body's placement are the body's own, which move from
// iteration to iteration; its scratch is the function's.
struct Placement {
  std::vector<Location> values;  // per value; a view has its operand's
  struct Inner {
    std::vector<Placement> regions;
    std::vector<Location> carry_twins;  // per carry of a repeat: its second buffer, for every other iteration
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
  std::vector<bool> donated;  // per input: dead afterwards, its place may be reused
  Work work;                  // executed, collectives excluded
  Placement placement;
  Bytes scratch;                    // planned size
  Bytes activations, workspace;     // live at the peak
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
  int slot = 0;            // for ports with by_slot
};

struct Schedule {
  std::string name;  // "train", "evaluate", "snapshot", …
  std::vector<Action> actions;
};

// The logical shards of the batch that a device owns, in exact training (partition/exact.h). A device runs one shard
// after the other, and all microbatches of a shard in sequence. Where forward has collectives, all devices run the same
// number of rounds: a device that owns fewer shards begins with idle rounds.
struct LogicalShards {
  int shards = 0;            // of all devices
  int first = 0, owned = 0;  // of this device
  int idle = 0;              // rounds without a shard
  int microbatches = 1;      // of a shard, in training
  std::int64_t rows = 0;     // of a microbatch
  int rounds() const { return idle + owned; }
  // The first row, in the whole batch, of this device's `microbatch`; a shard has `of_a_shard` of them. -1 in an idle
  // round.
  std::int64_t first_row(int microbatch, int of_a_shard) const;
};

struct Program {
  std::string name;
  Target target;
  Mesh mesh;  // all axes have a size above 1
  std::vector<ProgramValue> values;
  std::vector<Function> functions;
  std::vector<Schedule> schedules;
  Bytes arena;
  std::optional<LogicalShards> shards = {};  // exact training only

  int value_named(std::string_view name) const;  // Errors: Failure(not_found)
  std::optional<int> find_value(std::string_view name) const;
  const Function& function_named(std::string_view name) const;
  const Schedule& schedule_named(std::string_view name) const;
  const Schedule* find_schedule(std::string_view name) const;
};

// The slot that the port names in an action; -1 if the value has no such slot.
int slot_of(const Program& program, const Port& port, const Action& action);

// The work of a schedule: the sum over its actions.
Work work_of(const Program& program, const Schedule& schedule);

// The arena's bytes by owner. A byte that values share at different times counts for the first of their residences, in
// the order of Residence. `unused`: gaps left by alignment and packing. All entries sum to the arena's size.
struct MemoryByOwner {
  std::array<Bytes, kNumResidences> bytes{};
  Bytes unused;
  Bytes operator[](Residence r) const { return bytes[static_cast<std::size_t>(r)]; }
};
MemoryByOwner memory_by_owner(const Program& program);

// Verifies the Program, independently of the planners:
//   graphs     verify; ports have the types of their values
//   aliases    inside the function no node reads the input after the write; across actions every other reader of the
//              value is ordered before or after the writer
//   contents   a value that is read was written, by the microbatch that reads it, and not donated since
//   memory     blocks of a scratch or of the arena with overlapping lifetimes do not overlap
// Errors: Failure(invalid) that names function, action and value.
void verify(const Program& program);

std::string to_text(const Program& program);
// Hex. Covers everything that decides what is computed, what is moved, and where: to_text without the name, and all
// placements.
std::string hash_of(const Program& program);

// The key of a node in Target::workspace: op, operand types, attributes.
std::string workspace_key(const Graph& graph, const GraphNode& node);

}  // namespace systole

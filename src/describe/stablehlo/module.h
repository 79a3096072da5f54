#pragma once
// A graph, or a function of a Program, as a StableHLO module: @main takes the graph's inputs and returns its outputs.
//
//   Module m = lower(program, program.function_named("forward"), {});
//   // m.text is compiled for m.devices partitions; arguments[i] is bound to the value of arguments[i].port
//
// For a mesh, the body is one sdy.manual_computation over all axes: it describes the work of one device, with the
// Program's own collectives. Arguments and results are declared with global shapes and the sharding of their layout;
// the runtime passes the local shard of each device. A global value is the concatenation of all shards, padding
// included; partial sums are declared as replicated. Each device computes its coordinates from its number, so
// "coordinate.<axis>" is not an argument.
//
// An output that reuses an input's buffer is tf.aliasing_output of that argument; an input that is dead afterwards is
// jax.buffer_donor. Recomputation is protected by optimization_barriers.

#include <optional>
#include <string>
#include <vector>

#include "describe/ir/ir.h"
#include "describe/program/program.h"
#include "describe/stablehlo/options.h"

namespace systole::stablehlo {

struct ModulePort {
  std::string name;          // of the graph's input or output
  Type local, whole;         // shape on one device; global shape
  std::optional<Port> port;  // the value, if it is a Program's function
};

struct Module {
  std::string name, text;
  std::vector<ModulePort> arguments, results;
  std::vector<Alias> aliases;      // between results and arguments
  std::vector<bool> donated;       // per argument: its buffer is consumed
  int devices = 1;                 // number of partitions to compile for
  std::vector<std::string> notes;  // which of several alternatives was chosen
};

// A graph of one device. Errors of all overloads: Failure(unsupported) that names an op or type without a lowering, and
// its place in the model.
Module lower(const Graph& graph, const LowerOptions& options = {});
// A function of one device, with its aliases, donations and ports.
Module lower(const Function& function, const LowerOptions& options = {});
// A function of a Program, possibly for a mesh.
Module lower(const Program& program, const Function& function, const LowerOptions& options = {});

}  // namespace systole::stablehlo

#pragma once
// A graph, or a function of a Program, as a StableHLO module: @main takes the graph's inputs and gives its outputs.
//
//   Module m = lower(program, program.function_named("forward"), {});
//   // m.text is compiled for m.devices partitions; arguments[i] is bound to the value of arguments[i].port
//
// Of a mesh: the body is one sdy.manual_computation over all axes, which is to say that it is what one device does,
// with the Program's own collectives. Arguments and results are declared as wholes, each cut as its layout says; a
// runtime hands over what each device has. A whole is the parts end to end, with what fills them up; terms of a sum
// are declared as if every device had the same. A device knows its coordinates from its number, so "coordinate.<axis>"
// is no argument.
//
// An output that takes an input's place is tf.aliasing_output of that argument; an input that is dead afterwards is
// jax.buffer_donor. What was recomputed to save memory is fenced by optimization_barriers.

#include <optional>
#include <string>
#include <vector>

#include "describe/graph/ir.h"
#include "describe/graph/program.h"
#include "describe/stablehlo/options.h"

namespace systole::stablehlo {

struct ModulePort {
  std::string name;          // of the graph's input or output
  Type local, whole;         // of one device; of all
  std::optional<Port> port;  // of a Program's function: the value
};

struct Module {
  std::string name, text;
  std::vector<ModulePort> arguments, results;
  std::vector<Alias> aliases;      // of results and arguments
  std::vector<bool> donated;       // per argument: gone afterwards
  int devices = 1;                 // partitions to compile it for
  std::vector<std::string> notes;  // which of several ways was taken
};

// A graph of one device. Errors of all: Failure(unsupported) that names an op or type that cannot be lowered, and where
// it is in the model.
Module lower(const Graph& graph, const LowerOptions& options = {});
// A function of one device: with its aliases, what it donates, its ports.
Module lower(const Function& function, const LowerOptions& options = {});
// A function of a Program, which may be of a mesh.
Module lower(const Program& program, const Function& function, const LowerOptions& options = {});

}  // namespace systole::stablehlo

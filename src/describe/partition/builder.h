#pragma once
// Builds a Program from values, functions bound to them by name, and schedules: runs the Target's passes, plans
// scratches and arena, and verifies. Shared by training, evaluation and serving.

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "describe/passes/passes.h"
#include "describe/program/memory.h"
#include "describe/program/program.h"

namespace systole {

// Binds a function's inputs and outputs: name in the graph → value and slot (Port). A name that is absent binds to the
// value of the same name.
struct Binding {
  std::string value;
  bool by_microbatch = false;
  bool by_slot = false;
  int slot = 0;
};
using Bindings = std::map<std::string, Binding>;

class ProgramBuilder {
 public:
  // `workspace_of` gives the workspace of nodes that the Target's table lacks; finish() enters it there. May be empty.
  ProgramBuilder(std::string name, Mesh mesh, Target target, WorkspaceOf workspace_of);

  // Errors of all: Failure(invalid).
  int add_value(ProgramValue value);
  bool has_value(const std::string& name) const { return values_.contains(name); }
  const ProgramValue& value(const std::string& name) const {
    return program_.values[static_cast<std::size_t>(value_named(name))];
  }
  bool has_function(std::string_view name) const;
  // Adds the parameters of a graph that the Program lacks.
  void add_parameters(const Graph& graph);

  // An output bound to the same value and slot as an input becomes its alias. `donated`: names of inputs that are dead
  // afterwards.
  int add_function(const std::string& name, Graph graph, const Bindings& inputs, const Bindings& outputs,
                   std::vector<std::string> donated = {});

  // For functions added from now on: collectives overlap with other work (overlap_collectives.h). Default: true.
  void set_overlap(bool overlap) { overlap_ = overlap; }
  // Adds the waits between streams: an action waits for earlier actions of the list that write what it reads or writes,
  // or read what it writes.
  void add_waits(Schedule& schedule) const;
  void add_schedule(Schedule schedule) { program_.schedules.push_back(std::move(schedule)); }
  int function_index(std::string_view name) const;

  void set_shards(const LogicalShards& shards) { program_.shards = shards; }

  Program finish();  // plans and verifies
  // Without offsets and verification, for counting only.
  Program unplaced() { return std::move(program_); }

 private:
  int value_named(const std::string& name) const;

  Program program_;
  std::unordered_map<std::string, int> values_;  // by name
  WorkspaceOf workspace_of_;
  bool overlap_ = true;
};

// The passes of a function, in order: fold constants, merge common nodes, widen results, drop dead nodes, fuse chains
// as the Target allows, own outputs.
std::vector<Pass> function_passes(const Target& target);

}  // namespace systole

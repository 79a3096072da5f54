#pragma once
// Puts a Program together: values, functions bound to them by name, schedules; then runs the passes that a Target asks
// for, plans scratches and arena, and verifies. What training, evaluation and serving have in common.

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "describe/graph/memory.h"
#include "describe/graph/passes/passes.h"
#include "describe/graph/program.h"

namespace systole {

// How a function's inputs and outputs are bound: name in the graph → value, and which of its slots (Port). Names that
// are absent bind to the value of the same name.
struct Binding {
  std::string value;
  bool by_microbatch = false;
  bool by_slot = false;
  int slot = 0;
};
using Bindings = std::map<std::string, Binding>;

class ProgramBuilder {
 public:
  // `workspace_of` measures the scratch of nodes that the Target's table does not have yet (it is entered there); may
  // be empty.
  ProgramBuilder(std::string name, Mesh mesh, Target target, WorkspaceOf workspace_of);

  // Errors of all: Failure(invalid).
  int add_value(ProgramValue value);
  bool has_value(const std::string& name) const { return values_.contains(name); }
  const ProgramValue& value(const std::string& name) const {
    return program_.values[static_cast<std::size_t>(value_named(name))];
  }
  bool has_function(std::string_view name) const;
  // Adds the parameters of a graph that are not there yet.
  void add_parameters(const Graph& graph);

  // `in_place`: outputs (by name) that take the place of the input bound to the same value. An output bound to the
  // value of an input is an alias. `donated`: names of inputs that are dead afterwards.
  int add_function(const std::string& name, Graph graph, const Bindings& inputs, const Bindings& outputs,
                   std::vector<std::string> donated = {});

  // Of functions added from now on; true at the beginning: collectives run beside other work (overlap_collectives.h).
  void set_overlap(bool overlap) { overlap_ = overlap; }
  // Gives every action the waits for those of other streams that write what it reads or writes, or read what it writes,
  // in the order of the list.
  void add_waits(Schedule& schedule) const;
  void add_schedule(Schedule schedule) { program_.schedules.push_back(std::move(schedule)); }
  int function_index(std::string_view name) const;

  void set_shards(const ShardTurns& turns) { program_.shards = turns; }

  Program finish();  // plans, verifies
  // Functions, values and schedules alone, for who only counts: no places, no proof.
  Program unplaced() { return std::move(program_); }

  std::vector<PassRecord>& records() { return records_; }

 private:
  int value_named(const std::string& name) const;

  Program program_;
  std::unordered_map<std::string, int> values_;  // by name
  WorkspaceOf workspace_of_;
  std::vector<PassRecord> records_;
  bool overlap_ = true;
};

// The passes of a function, in order: fold, merge, widen, drop, fuse as the Target allows, own outputs.
std::vector<Pass> function_passes(const Target& target);

}  // namespace systole

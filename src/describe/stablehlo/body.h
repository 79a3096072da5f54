#pragma once
// Writes the nodes of a graph into a block, in order, each by its op's lowering.

#include <functional>
#include <map>
#include <string>

#include "describe/stablehlo/lower_op.h"
#include "describe/stablehlo/module.h"
#include "ground/mesh/mesh.h"

namespace systole::stablehlo {

class BodyWriter : public ModuleContext {
 public:
  BodyWriter(const Mesh& mesh, const LowerOptions& options) : mesh_(mesh), options_(options) {}

  ReplicaGroups groups(std::string_view axis) override;
  std::string permute_pairs(std::string_view axis, std::int64_t by) override;
  const LowerOptions& options() const override { return options_; }
  void note(std::string text) override;
  std::vector<std::string> notes() const { return notes_; }
  // Definitions of attribute names, one per line; they precede the module.
  const std::string& definitions() const { return definitions_; }
  std::vector<Ssa> region(Builder& b, const Graph& graph, std::span<const Ssa> inputs) override;

 private:
  class Walk;
  using Numbers = std::vector<std::vector<std::int64_t>>;  // device numbers
  Numbers groups_of(std::string_view axis) const;
  // Defines `name` for the numbers and returns the reference to it.
  std::string define(std::string name, const Numbers& numbers);
  const Mesh& mesh_;
  const LowerOptions& options_;
  std::vector<std::string> notes_;
  std::map<std::string, ReplicaGroups, std::less<>> groups_;           // by axis
  std::map<std::pair<std::string, std::int64_t>, std::string> pairs_;  // by axis and distance
  std::string definitions_;
  std::string path_;     // names of the enclosing repeats: "layer/"
  bool fenced_ = false;  // inside a region of a recomputed node, whose inputs are already fenced
};

}  // namespace systole::stablehlo

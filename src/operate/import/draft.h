#pragma once
// A workload in the making: keys with where each comes from, what was asked of a node's resources in whatever terms,
// and what had to be left out.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "describe/spec/workload.h"
#include "ground/base/document.h"
#include "operate/import/import.h"
#include "operate/import/shell_words.h"

namespace systole {

// A number and who said it.
template <typename T>
struct Said {
  T value{};
  std::string from;
};

// Launchers count in different terms; resolve() makes resources of them.
struct AskedResources {
  std::optional<Said<CountRange>> nodes;
  std::optional<Said<std::int64_t>> tasks, tasks_per_node, launched_per_node;  // launched: by torchrun, on a node
  std::optional<Said<std::int64_t>> gpus, gpus_per_node, gpus_per_task;
  std::optional<Said<std::int64_t>> cpus_per_task, cpus_per_gpu, millicpus_per_node;
  std::optional<Said<Bytes>> memory_per_node, memory_per_cpu, memory_per_gpu;
};

class Draft {
 public:
  explicit Draft(std::string file) : file_(std::move(file)) {}

  // The workload that what is read was rendered from; what is said besides lies over it.
  void begin_with(const Workload& workload, Node node);
  const Workload& begun_with() const { return begun_with_; }
  bool begun() const { return begun_; }

  // Two who say different things of one key are an error.
  void set(const std::string& path, Node value, const std::string& from);
  void set_entry(const std::string& path, const std::string& key, const std::string& value, const std::string& from);
  // A volume at a path: its keys, each with who said it.
  struct VolumeKey {
    std::string key;
    Node value;
    std::string from;
  };
  void set_volume(const std::string& path, const std::vector<VolumeKey>& keys);
  // A value that is there only where nobody says it.
  void propose(const std::string& path, Node value, const std::string& from);
  bool has(const std::string& path) const { return values_.contains(path); }
  template <typename T>
  void ask(std::optional<Said<T>> AskedResources::*what, T value, const std::string& from) {
    std::optional<Said<T>>& said = asked_.*what;
    if (said && !(said->value == value)) return disagree(said->from, from);
    said = Said<T>{std::move(value), from};
  }
  const AskedResources& asked() const { return asked_; }

  // An environment variable: those that the agent sets are left out.
  void variable(const std::string& name, const std::string& value, const std::string& from);
  // How long ranks get to save; what they get anyway is not said.
  void notice(std::int64_t seconds, const std::string& from);
  void left_out(std::string what, std::string why);
  // It is carried over, and a reader should know how.
  void note(std::string what, std::string why);
  void wrong(Error e) { errors_.push_back(std::move(e)); }
  std::size_t num_errors() const { return errors_.size(); }
  // The errors behind the first `from` that have no place are of this one.
  void place_errors(std::size_t from, const Where& where);
  const std::vector<Error>& errors() const { return errors_; }

  // Variables that the script gives itself, by name: launchers' words may name them.
  void remember(const std::string& name, ShellWord value) { variables_[name] = std::move(value); }
  const ShellWord* variable_named(const std::string& name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? nullptr : &found->second;
  }

  // Errors: all that were noted; invalid: nothing starts a program; what reading the workload says.
  Result<Imported> finish(std::string_view kind);

 private:
  void disagree(const std::string& one, const std::string& other);
  void resolve();
  void resolve_nodes();
  void resolve_ranks(std::int64_t ranks_per_node);
  std::optional<std::int64_t> gpus_per_node();
  std::string understood() const;
  Node tree() const;

  std::string file_;
  Node base_;
  bool begun_ = false;
  Workload begun_with_;
  std::map<std::string, Node> values_;  // by path; each node's place says who said it
  std::map<std::string, std::map<std::string, Node>> entries_;
  AskedResources asked_;
  std::map<std::string, ShellWord> variables_;
  std::vector<LeftOut> left_out_, notes_;
  std::vector<Error> errors_;
};

// Whether the agent sets it for its ranks.
bool is_agents_variable(std::string_view name);
// In the largest unit that says it exactly.
Node bytes_node(Bytes bytes);
// The words of `text` that stand behind a '#', short and plain.
std::string origin(std::string_view text);

}  // namespace systole

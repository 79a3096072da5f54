#pragma once
// The draft of an imported workload: keys with their sources, a node's resources as requested in any launcher's terms,
// and what was left out.

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

// A number and its source.
template <typename T>
struct Said {
  T value{};
  std::string from;
};

// Launchers count in different terms; resolve() derives the resources from them.
struct RequestedResources {
  std::optional<Said<CountRange>> nodes;
  std::optional<Said<std::int64_t>> tasks, tasks_per_node, launched_per_node;  // launched: by torchrun, per node
  std::optional<Said<std::int64_t>> gpus, gpus_per_node, gpus_per_task;
  std::optional<Said<std::int64_t>> cpus_per_task, cpus_per_gpu, millicpus_per_node;
  std::optional<Said<Bytes>> memory_per_node, memory_per_cpu, memory_per_gpu;
};

class Draft {
 public:
  explicit Draft(std::string file) : file_(std::move(file)) {}

  // Starts from the workload that the input was rendered from; later values override it.
  void begin_with(const Workload& workload, Node node);
  const Workload& begun_with() const { return begun_with_; }
  bool begun() const { return begun_; }

  // Setting a key to two different values is an error.
  void set(const std::string& path, Node value, const std::string& from);
  void set_entry(const std::string& path, const std::string& key, const std::string& value, const std::string& from);
  // A volume at a path: its keys, each with its source.
  struct VolumeKey {
    std::string key;
    Node value;
    std::string from;
  };
  void set_volume(const std::string& path, const std::vector<VolumeKey>& keys);
  // A default, used only if nothing sets the key.
  void propose(const std::string& path, Node value, const std::string& from);
  bool has(const std::string& path) const { return values_.contains(path); }
  template <typename T>
  void ask(std::optional<Said<T>> RequestedResources::*what, T value, const std::string& from) {
    std::optional<Said<T>>& said = asked_.*what;
    if (said && !(said->value == value)) return disagree(said->from, from);
    said = Said<T>{std::move(value), from};
  }
  const RequestedResources& asked() const { return asked_; }

  // Sets an environment variable; skips those that the agent sets.
  void variable(const std::string& name, const std::string& value, const std::string& from);
  // Time for ranks to save; the default is not written.
  void notice(std::int64_t seconds, const std::string& from);
  void left_out(std::string what, std::string why);
  // Notes something that is carried over in a different form.
  void note(std::string what, std::string why);
  void wrong(Error e) { errors_.push_back(std::move(e)); }
  std::size_t num_errors() const { return errors_.size(); }
  // Sets the position of errors from index `from` on that have none.
  void place_errors(std::size_t from, const Where& where);
  const std::vector<Error>& errors() const { return errors_; }

  // Records a variable that the script sets; launchers' words may use it.
  void remember(const std::string& name, ShellWord value) { variables_[name] = std::move(value); }
  const ShellWord* variable_named(const std::string& name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? nullptr : &found->second;
  }

  // Errors: all noted ones; invalid: nothing starts a program; those of reading the workload.
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
  std::map<std::string, Node> values_;  // by path; each node's position is its source
  std::map<std::string, std::map<std::string, Node>> entries_;
  RequestedResources asked_;
  std::map<std::string, ShellWord> variables_;
  std::vector<LeftOut> left_out_, notes_;
  std::vector<Error> errors_;
};

// Whether the agent sets it for its ranks.
bool is_agents_variable(std::string_view name);
// In the largest exact unit.
Node bytes_node(Bytes bytes);
// `text` as a short, plain comment text.
std::string origin(std::string_view text);

}  // namespace systole

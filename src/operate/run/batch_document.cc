#include "operate/run/batch_document.h"

#include <filesystem>

#include "execute/serve/batch/batch_job.h"
#include "ground/base/files.h"
#include "ground/base/text_file.h"

namespace systole {
namespace {

// The keys that the job itself decides.
Status check_cluster(const Node& cluster) {
  if (!cluster.is_map() && !cluster.is_null()) return cluster.wrong("a map: image, claims, resources, kubernetes");
  for (const char* key : {"systole", "workload", "command", "model", "data", "train", "serve", "folder"})
    if (const Node* value = cluster.find(key))
      return key_error(ErrorKind::invalid, fmt::format("cluster.{}", key), "the job says what is run")
          .at(value->where())
          .hinted("take it out; cluster has image, claims, volumes, resources, labels, and a target's own keys");
  return {};
}

}  // namespace

Result<std::optional<BatchDocument>> batch_document(const WorkloadArguments& arguments) {
  if (!is_file(arguments.path)) return std::optional<BatchDocument>();  // a pipe is read once
  const std::string text = TRY(read_text_file(arguments.path));
  const Result<Node> node = parse_yaml(text, arguments.path);
  if (!node.ok() || node->find("input") == nullptr || node->find("output") == nullptr)
    return std::optional<BatchDocument>();
  const BatchJob job = TRY(parse_batch_job(text, arguments.path));
  TRY(check_cluster(job.cluster));
  Node keys = job.cluster.is_map() ? job.cluster : Node::map();  // a copy, whose keys have their places
  keys.set("systole", 1);
  if (keys.find("name") == nullptr) keys.set("name", std::filesystem::path(arguments.path).stem().string());
  keys.set("command", Node::sequence({"systole", "batch"}));
  const std::string folder = std::filesystem::path(job.output).parent_path().string();
  if (!folder.empty()) keys.set("folder", folder);
  BatchDocument document;
  document.workload = TRY(workload_from(keys, arguments.path, {arguments.environment, arguments.sets}));
  Node rest = Node::map();
  for (const Node::Entry& entry : node->entries())
    if (entry.key != "cluster") rest.set(entry.key, entry.value);
  document.task = {.file = to_yaml(rest),
                   .model = job.model,
                   .input = job.input,
                   .output = job.output,
                   .chat_template = job.chat_template};
  document.task.schedule = job.schedule;
  document.task.is_shared = job.shards.has_value();
  return std::optional(std::move(document));
}

}  // namespace systole

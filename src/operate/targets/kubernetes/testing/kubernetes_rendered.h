#pragma once
// Renders workloads for Kubernetes with the built-in catalog, and accesses the resulting objects. For tests.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/testing/places.h"
#include "operate/render/testing/builtin_facts.h"
#include "operate/targets/job_targets.h"
#include "operate/targets/kubernetes/testing/official_schema.h"

namespace systole {

inline const std::string kSource = SYSTOLE_SOURCE_DIR;

inline Workload workload(const char* name, const std::vector<std::string>& sets) {
  const std::string path = kSource + "/examples/" + name;
  return read_workload(read_text_file(path).value(), path, {.sets = sets}).value();
}

inline Result<Rendered> rendered(const Workload& of, const Plan* plan = nullptr, const char* target = "kubernetes") {
  RenderRequest ask{.target = find_job_target_row(target), .workload = of, .facts = builtin_facts()};
  ask.plan = plan;
  ask.workload_file = {to_yaml(of), std::string(64, '1')};
  ask.program_sha256 = std::string(64, '2');
  ask.version = "systole";
  ask.place = "here";
  return render(ask);
}

inline std::vector<Node> objects_of(const Workload& of, const char* target = "kubernetes") {
  const std::string text = rendered(of, nullptr, target).value().files[0].text;
  std::vector<Node> objects;
  for (std::size_t at = 0; at != text.npos;) {
    const std::size_t end = text.find("\n---\n", at);
    objects.push_back(parse_yaml(text.substr(at, end == text.npos ? end : end + 1 - at), "job.yaml").value());
    at = end == text.npos ? end : end + 5;
  }
  return objects;
}

inline const Node& of_kind(const std::vector<Node>& objects, std::string_view kind) {
  const auto found = std::ranges::find_if(objects, [&](const Node& o) { return o.find("kind")->text() == kind; });
  CHECK(found != objects.end(), "there is no {}", kind);
  return *found;
}

inline const Node& at(const Node& node, std::string_view path) {
  const Node* now = &node;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const std::string step(path.substr(0, dot));
    const bool index = now->is_sequence();
    now = index ? &now->items()[static_cast<std::size_t>(std::stoi(step))] : now->find(step);
    CHECK(now != nullptr, "there is no {}", step);
    path = dot == path.npos ? "" : path.substr(dot + 1);
  }
  return *now;
}

// A copy with `value` at the path; null removes the entry.
inline Node with(const Node& node, std::string_view path, const Node& value) {
  const std::size_t dot = path.find('.');
  const std::string step(path.substr(0, dot));
  const auto inner = [&](const Node& child) {
    return dot == path.npos ? value : with(child, path.substr(dot + 1), value);
  };
  Node made = node.is_sequence() ? Node::sequence() : Node::map();
  for (std::size_t i = 0; i < node.items().size(); ++i)
    made.push(std::to_string(i) == step ? inner(node.items()[i]) : node.items()[i]);
  bool there = node.is_sequence();
  for (const Node::Entry& entry : node.entries()) {
    const Node child = entry.key == step ? inner(entry.value) : entry.value;
    there = there || entry.key == step;
    if (!child.is_null()) made.set(entry.key, child);
  }
  if (!there) made.set(step, inner(Node::map()));
  return made;
}

inline OfficialSchemas& schemas() {
  static OfficialSchemas all(kSource + "/data/schemas");
  return all;
}

inline std::string refusals(const char* name, std::vector<std::string> sets, const char* target = "kubernetes") {
  const Result<Rendered> result = rendered(workload(name, sets), nullptr, target);
  if (result.ok()) return "";
  std::string text = result.error().message + " | " + result.error().hint + "\n";
  for (const Error& other : result.error().others) text += other.message + " | " + other.hint + "\n";
  return text;
}

}  // namespace systole

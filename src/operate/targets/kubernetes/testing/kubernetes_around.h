#pragma once
// A user's program on Kubernetes, for tests of the objects around its job.

#include <map>
#include <string>
#include <vector>

#include "operate/targets/kubernetes/testing/kubernetes_rendered.h"

namespace systole {

inline std::vector<std::string> program_on(const std::string& accelerators, std::vector<std::string> more = {}) {
  std::vector<std::string> sets = {"image=registry.example/ddp@sha256:" + std::string(64, 'a'), "claims={/runs: runs}",
                                   "folder=/runs", "resources.threads=4", "resources.memory=16GiB"};
  if (!accelerators.empty()) sets.push_back("resources.accelerators=" + accelerators);
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

inline const Node& container_of(const Node& job) { return at(job, "spec.template.spec.containers.0"); }

inline std::map<std::string, std::string> env_of(const Node& job) {
  std::map<std::string, std::string> env;
  for (const Node& one : at(container_of(job), "env").items())
    if (const Node* value = one.find("value"); value != nullptr) env[one.find("name")->text()] = value->text();
  return env;
}

inline std::string text_of(const std::vector<std::string>& sets) {
  return rendered(workload("ddp.yaml", sets)).value().files[0].text;
}
inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline void expect_official(const std::vector<Node>& objects) {
  for (const Node& object : objects) {
    if (object.find("kind")->text() == "SecretProviderClass") continue;  // there is no stored schema of it
    EXPECT_EQ(schemas().wrong(object).value_or(""), "") << to_yaml(object);
  }
}

}  // namespace systole

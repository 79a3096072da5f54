#include "describe/spec/targets/kubernetes_keys.h"

#include "describe/spec/schema.h"
#include "describe/spec/word_codecs.h"

namespace systole {
namespace {

std::string wrong_label(const std::string& name) {
  return name.empty() || name.size() > 317 ? "is no name of a label" : "";
}

}  // namespace

void add_kubernetes_keys(Schema& schema) {
  schema.sections.push_back({"kubernetes", "What Kubernetes takes besides.", {}, {}});
  auto& keys = schema.keys;
  using Kind = KubernetesSpec::Kind;
  using Launcher = KubernetesSpec::Launcher;
  keys.push_back(
      {.path = "kubernetes.kind",
       .codec = usual_choice_codec<Kind>(AT(kubernetes.kind), {{"auto", Kind::automatic},
                                                               {"job", Kind::job},
                                                               {"jobset", Kind::jobset},
                                                               {"pytorchjob", Kind::pytorchjob},
                                                               {"jaxjob", Kind::jaxjob},
                                                               {"trainjob", Kind::trainjob}}),
       .doc = "Which object runs it. auto: a JobSet for TPU slices of several hosts, else a Job.",
       .more = "A pytorchjob, jaxjob or trainjob needs Kubeflow's operators in the cluster, a jobset JobSet.",
       .optional = true});
  keys.push_back({.path = "kubernetes.launcher",
                  .codec = usual_choice_codec<Launcher>(AT(kubernetes.launcher), {{"auto", Launcher::automatic},
                                                                                  {"systole", Launcher::systole},
                                                                                  {"torchrun", Launcher::torchrun},
                                                                                  {"program", Launcher::program}}),
                  .doc = "Who starts the ranks of a pod. auto: torchrun under Kubeflow (jaxjob: the program), else "
                         "systole.",
                  .more = "The image has to have it. torchrun and program are for a program of your own (command); "
                          "program is started once a pod.",
                  .optional = true});
  keys.push_back({.path = "kubernetes.namespace",
                  .codec = word_codec(AT(kubernetes.name_space), "-", "namespace"),
                  .doc = "Where its objects are made. Without it, default.",
                  .optional = true});
  keys.push_back({.path = "kubernetes.selector",
                  .codec = named_texts_codec(AT(kubernetes.selector), wrong_label, "NAME: VALUE, as nodes have it"),
                  .doc = "Labels that its nodes have.",
                  .optional = true});
  keys.push_back({.path = "kubernetes.service_account",
                  .codec = word_codec(AT(kubernetes.service_account), "-.", "name of a service account"),
                  .doc = "As whom it speaks to the cluster. Without it, as nobody: no token is mounted.",
                  .optional = true});
  add_queue_keys(keys);
}

}  // namespace systole

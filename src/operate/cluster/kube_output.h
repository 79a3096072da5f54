#pragma once
// What the pods of a run write: what is there is read at once, what comes is followed by a thread for each.

#include <memory>
#include <string>

#include "operate/cluster/cluster.h"
#include "operate/cluster/kube_api.h"

namespace systole {

// Of the pods with these labels; sources are named as pods are, without what Kubernetes adds at random. `first_alone`:
// of the pod of rank 0 and of those that come in its place.
std::unique_ptr<Output> pods_output(std::unique_ptr<KubeApi> api, std::string name_space, std::string labels,
                                    bool first_alone);

// Whether it has the rank 0 of its run, as far as labels say: the pods of a plain run are all alike.
bool is_first(const Node& pod);
// "line-0": of "line-0-x7k2p", where it has an index.
std::string short_name(const Node& pod);

}  // namespace systole

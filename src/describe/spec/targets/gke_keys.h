#pragma once
// The section gke of a workload. An empty field is unset.

#include <string>

namespace systole {

// A cluster of Google Kubernetes Engine; names are passed unchanged.
struct GkeSpec {
  std::string project, cluster, location;  // location: a zone, or a region that contains `zone`
  std::string zone, network, machine;      // if empty: location, the cluster's name, the smallest machine that fits
  enum class Driver { latest, standard, manual } driver = Driver::latest;
  enum class Image { cos, ubuntu } image = Image::cos;
};

}  // namespace systole

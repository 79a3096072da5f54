#pragma once
// Plain machines: the section ssh of a workload.

#include <string>
#include <vector>

namespace systole {

struct SshSpec {
  std::vector<std::string> hosts;  // [user@]host[:port]
};

}  // namespace systole

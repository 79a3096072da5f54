#pragma once
// How a server of `workload: serve` is started, whatever starts it: `systole serve` with the options that the keys of
// `serve` stand for.

#include <cstdint>
#include <string>
#include <vector>

#include "operate/render/cluster_job.h"

namespace systole {

// The port of a server that has its address for itself.
inline constexpr int kServerPort = 8000;

// What differs between targets.
struct ServerPlace {
  std::string token_file;  // of the keys that requests show
  std::string port = std::to_string(kServerPort);
  std::int64_t replicas = 1;  // behind this port
  std::int64_t threads = 0;   // of each; 0: those that its place gives it
};

// The options that follow from the workload alone.
std::vector<std::string> serve_options(const Workload& workload);
// The words of the command, as they are.
std::vector<std::string> server_words(const Workload& workload, const ClusterJob& job, const ServerPlace& place);
// The same as a line of sh, where "$program" is systole. The texts of `place` stand in double quotes and may contain
// expansions; a key is never in them, only the name of its file.
std::string server_line(const Workload& workload, const ClusterJob& job, const ServerPlace& place);

// Seconds in which the requests under way may end.
std::int64_t server_grace(const ClusterJob& job);
// Twice the cold start, after which a server that is not ready never will be.
Seconds startup_budget(const Workload& workload);

// How many servers a target that starts them on one machine, behind one port, starts there: the least of
// serve.replicas, with a warning where there may be more. Errors: unsupported: several on devices.
Result<std::int64_t> servers_of_machine(const Workload& workload, const ClusterJob& job,
                                        std::vector<std::string>& warnings);

// The beginning of a line of curl that shows the first key of a file (a word of sh), which is in no list of processes.
std::string asking_with(const std::string& token_file);

// Errors: invalid: nothing says what is served, or it would be taken for an option, or (`absolute`) it is no path from
// the root.
Status check_served(const Workload& workload, bool absolute, const char* where);

}  // namespace systole

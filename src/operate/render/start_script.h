#pragma once
// start.sh: the plain sh script that runs on each node of any target. It verifies the files' digests and becomes the
// node's agent; started again, it goes on.

#include <string>

#include "operate/render/cluster_job.h"

namespace systole {

// Values that only the target knows, as sh words that may contain expansions; they are used in double quotes.
struct StartScriptValues {
  std::string files;                   // the folder of the rendered files
  std::string folder;                  // of the run
  std::string leader, port;            // address of the agents' rendezvous; empty: a single node
  std::string node, host, token_file;  // this node's name, address (empty: found by the route), file of the run's token
  std::string more;                    // more arguments of `systole run`
  std::string metrics;                 // address of a model's metrics server, HOST:PORT; empty: none
  std::string before;                  // lines of sh to run first
  std::string start;                   // last line, instead of the agent's; empty: the agent
  std::string serve;                   // the line of sh that is the server, instead of the agent's; empty: none
  std::string seed;                    // a number to add to train.seed; empty: none
};

std::string start_script(const RenderRequest& ask, const ClusterJob& job, const StartScriptValues& values);

}  // namespace systole

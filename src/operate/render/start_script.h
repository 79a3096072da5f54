#pragma once
// start.sh: what runs on each node of any target, as plain sh. It holds the files to their digests and becomes the
// agent of its node; begun again, it goes on.

#include <string>

#include "operate/render/cluster_job.h"

namespace systole {

// What only the target knows, as words of sh that may be expansions; double-quoted where they are used.
struct Meeting {
  std::string files;                   // the folder of the rendered files
  std::string folder;                  // of the run
  std::string leader, port;            // where the agents meet; empty: one node alone
  std::string node, host, token_file;  // this node's name, address (empty: found by the route), the run's token
  std::string more;                    // words of `systole run`
  std::string metrics;                 // where a model's metrics are served, HOST:PORT; empty: nowhere
  std::string before;                  // lines of sh, run first
  std::string start;                   // the last line, in the place of the agent's; empty: the agent
  std::string seed;                    // what is added up to train.seed, a number; empty: nothing
};

std::string start_script(const RenderAsk& ask, const ClusterJob& job, const Meeting& meeting);

}  // namespace systole

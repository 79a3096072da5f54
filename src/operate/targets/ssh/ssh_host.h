#pragma once
// The sh scripts that run on a plain machine to start a run there, query it, stop it and delete it. Nothing needs to be
// installed: each connection sends its script. The state on the machine, for each run and each machine name:
//
//   ~/.systole/programs/SHA256       the program
//   ~/.systole/runs/RUN/NAME/sent    SUBMISSION JOB WORKLOAD_SHA256 of the last start
//                            pid     NUMBER BOOT START: the session leader and its start time; with another boot id or
//                                    another start time, it is a different process
//                            ledger  operate/cluster/allocation_ledger.h, of all submissions
//                            JOB.log output of this machine's agent
//                            stop    exists once a stop was requested
//                            files/  the rendered files;  token: the run's, while it runs
//                            lock    of the submitter, held by its connection
//
// NAME is part of the path because machines may share a home folder.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace systole {

enum class HostCommand {
  begin,  // answers the submitter, line by line: ssh_begin.cc
  query,  // lists the runs that it holds: ssh_text.h
  read,   // prints the agent's log from offset `from`, up to 4 MiB
  stop,   // asks the agent to save and end
  kill,   // ends it without saving
  purge,  // deletes everything but the run's own folder
};
// The script. `values`: variables that it reads: run (empty: all of them, for query), name, submission, job, workload,
// program, folder, leader, port, nodes, from.
std::string script_of(HostCommand act, const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace systole

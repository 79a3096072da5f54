#pragma once
// What is run on a plain machine, as sh, to begin a run there, look at it, stop it and take it away. Nothing of ours
// has to be there before: the words come with each connection. What is kept there, for each run and each name of a
// machine:
//
//   ~/.systole/programs/SHA256       the program
//   ~/.systole/runs/RUN/NAME/sent    SUBMISSION JOB WORKLOAD_SHA256 of what was begun last
//                            pid     NUMBER BOOT START: the process that leads its session, and when; of another boot
//                                    of the machine, or of another start, it is another process
//                            ledger  operate/cluster/ledger.h, of all submissions
//                            JOB.log what the agent of this machine writes
//                            stop    while it has been asked to stop
//                            files/  what was rendered;  token: the run's, while it runs
//                            lock    of whoever begins it, held by their connection
//
// NAME is there because machines may share a home.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace systole {

enum class HostAct {
  begin,  // answers whoever begins the run, line by line: ssh_begin.cc
  look,   // tells of what it holds: ssh_text.h
  read,   // writes what the agent wrote, behind `from` bytes, up to 4 MiB of it
  stop,   // asks the agent to save and end
  kill,   // ends it without
  purge,  // takes all of it away but the run's own folder
};
// The text of sh for it. `values`: of variables that it reads: run (empty: all of them, for look), name, submission,
// job, workload, program, folder, leader, port, nodes, from.
std::string script_of(HostAct act, const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace systole

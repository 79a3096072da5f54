#pragma once
// A model that is served by several ranks, each a process with a part of it (describe/partition/serving_layouts.h). Rank
// 0 has the tokenizer, the sampler, the scheduler and HTTP; the others run the steps that it sends
// (execute/serve/rank_steps.h). They meet at a rendezvous in rank 0's process:
//
//   engine      by rank 0: options of the engine, adapters, the checkpoint's step, the transport and the link, as JSON
//   segment     by rank 0, on one machine: the place of the shared memory
//   here/<r>    by rank r, a lease until it is ready: a second process of a rank is refused
//   ready/<r>   by rank r: it has its weights; a hash, equal of all, of its functions and of a run's weights
//   begin       by rank 0: all are ready, and steps or beats come from now on
//   failed/<r>  by rank r: why it cannot serve
//
// On one machine rank 0 starts the others as children, over shared memory. On several, each is started there, over TCP.
// There is no going on without a rank: all of them end when one is lost.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "execute/comm/collectives.h"
#include "execute/serve/rank_steps.h"
#include "ground/net/rendezvous_client.h"
#include "ground/net/rendezvous_server.h"
#include "ground/process/spawn.h"
#include "operate/run/rank_messages.h"
#include "operate/run/served_model.h"

namespace systole {

struct ServingRanksArguments {
  std::int64_t ranks = 1, rank = 0;
  std::string rendezvous;  // "host:port", of several machines; empty: this one alone
  std::string token_file;  // of several machines: the secret that they share
  bool tls = false;        // between machines
};

// The backend, which is cpu or reference, and threads of each rank; 0: this machine's, shared by its ranks.
struct RankMachine {
  std::string backend = "cpu";
  std::int64_t threads = 0;
};

class ServingRanks {
 public:
  // Rank 0's. On one machine, starts the others with the model `run`, as find_model takes it, and the words of `lora`.
  // Errors: invalid (arguments), unsupported (backend), those of the rendezvous and of starting a process.
  static Result<std::unique_ptr<ServingRanks>> start(const ServingRanksArguments& asked, const std::string& run,
                                                     const RankMachine& machine, const std::vector<std::string>& lora);
  ~ServingRanks();

  std::int64_t threads() const { return machine_.threads; }  // of rank 0
  MachineUse use() const;                                    // of open_machine

  // Tells the others what they serve, connects with them, and the device with all. `options.parts` is set.
  // Errors: of a rank, by name; not_found: one did not come in time.
  Status connect(const ServedModel& model, EngineOptions& options, const Machine& machine,
                 std::vector<RankedAdapter> adapters = {});
  // When the engine has its weights: waits until the others have theirs. From then on the engine's steps are theirs.
  // Errors: of a rank, by name; invalid: it has another Program or other weights; those of the model's hash.
  Status lead(Engine& engine, const ServedModel& model);
  // Why the model cannot be served any more: a rank has ended, or does not answer. Cheap.
  std::optional<Error> lost();
  // The better of the two reasons: that of a process that ended, which may show a moment later.
  Error cause(const Error& failure);

 private:
  ServingRanks() = default;
  Status start_process(std::int64_t rank, const std::string& run, const std::vector<std::string>& lora);
  Status wait(const std::function<Result<bool>()>& is_there, std::int64_t rank, Seconds longest);
  std::optional<Error> ended();

  ServingRanksArguments asked_;
  RankMachine machine_;
  RunToken token_;
  std::unique_ptr<RendezvousServer> server_;
  std::optional<RendezvousClient> client_;
  std::vector<Process> processes_;  // of ranks 1 and up, on this machine
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<LeadingSteps> steps_;
};

// Rank 0's ServingRanks; null: there is one rank. Errors: as ServingRanks::start.
Result<std::unique_ptr<ServingRanks>> start_ranks(const ServingRanksArguments& asked, const std::string& run,
                                                  const RankMachine& machine,
                                                  const std::vector<std::string>& lora = {});

// Errors: unsupported: `option`, which ranks cannot do, is given for several.
Status check_without_ranks(const ServingRanksArguments& asked, bool given, const char* option);

// The other ranks': serves until rank 0 ends, and returns the exit code. Signals ask rank 0, not this process: a first
// one waits for it.
// Errors: those of the model and of the engine; of the transport, when others are lost. Rank 0 is told; a rank that it
// started itself then only returns the code.
Result<int> serve_as_rank(const ServingRanksArguments& asked, const std::string& run,
                          const std::vector<std::string>& lora, const RankMachine& machine, Clock& clock);

}  // namespace systole

#include "operate/run/serving_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "describe/ir/text.h"
#include "describe/partition/serving_layouts.h"
#include "execute/comm/ring_transport.h"
#include "execute/comm/tcp_transport.h"
#include "ground/base/counted.h"
#include "ground/base/exit_code.h"
#include "ground/base/hash.h"
#include "ground/base/text_file.h"
#include "ground/net/lease_keeper.h"
#include "ground/net/tls.h"
#include "ground/process/machine.h"
#include "ground/process/signal_watch.h"
#include "operate/run/checkpoint_follower.h"
#include "operate/run/lora_option.h"

namespace systole {
namespace {

constexpr Seconds kPatience(30.0);                             // of a collective
constexpr Seconds kToCome(300.0);                              // of the others, to be started
constexpr Seconds kToLoad(1800.0);                             // of the others, to read their weights
constexpr std::chrono::milliseconds kLook(5);                  // between looks at what they say
constexpr const char* kTokenVariable = "SYSTOLE_RANKS_TOKEN";  // of a rank that rank 0 started

std::string key_of(const char* what, std::int64_t rank) { return fmt::format("{}/{}", what, rank); }

Status check(const ServingRanksArguments& asked, const RankMachine& machine) {
  if (asked.rank < 0 || asked.rank >= asked.ranks) {
    return error(ErrorKind::invalid, "--rank {} of {}", asked.rank, counted(asked.ranks, "rank"))
        .hinted(fmt::format("--rank 0 to {}, on each machine another", asked.ranks - 1));
  }
  if (machine.backend != "cpu" && machine.backend != "reference") {
    return error(ErrorKind::unsupported, "--ranks: over {} a model is served by one process", machine.backend)
        .hinted("leave out --ranks, or --device");
  }
  if (!asked.rendezvous.empty() && asked.token_file.empty() && std::getenv(kTokenVariable) == nullptr) {
    return error(ErrorKind::invalid, "ranks of several machines need the token that they share")
        .hinted(
            "--ranks-token-file FILE; make one, and copy it to every machine: (umask 077; od -An -tx1 -N16 "
            "/dev/urandom | tr -d ' \\n' > FILE)");
  }
  if (asked.rendezvous.empty() && (!asked.token_file.empty() || asked.rank > 0 || asked.tls)) {
    return error(ErrorKind::invalid, "--rank, --ranks-token-file and --ranks-tls are for ranks of several machines")
        .hinted("add --rendezvous host:port, or take them out");
  }
  return {};
}

Result<RunToken> token_of(const ServingRanksArguments& asked) {
  if (asked.token_file.empty()) {
    const char* given = std::getenv(kTokenVariable);
    return given != nullptr ? RunToken::parse(given) : RunToken::make();
  }
  std::string text = TRY(read_secret_file(asked.token_file, kKiB * 4));
  text.resize(text.find_last_not_of(" \r\n") + 1);
  Result<RunToken> token = RunToken::parse(text);
  if (token.ok()) return token;
  return error(ErrorKind::invalid, "--ranks-token-file: '{}': {}", asked.token_file, token.error().message);
}

std::int64_t share_of_threads(const ServingRanksArguments& asked, std::int64_t threads) {
  if (threads > 0 || !asked.rendezvous.empty()) return threads;
  return std::max<std::int64_t>(1, allowed_cores() / asked.ranks);
}

Result<std::unique_ptr<Transport>> over_tcp(const ServingRanksArguments& asked, RendezvousClient& client,
                                            const RunToken& token) {
  TcpOptions options{.patience = kPatience};
  options.mesh.host = TRY(own_address_towards(TRY(parse_address(asked.rendezvous))));
  options.mesh.connect_time = kToCome;
  if (asked.tls) options.mesh.tls = TRY(Tls::of(token));
  return tcp_transport(client, static_cast<std::int32_t>(asked.rank), static_cast<std::int32_t>(asked.ranks), options);
}

// Of what all ranks run, where values may lie elsewhere on each machine; and of a run's weights, whose manifest has the
// hashes of its chunks. Those of a published model would be read as a whole.
Result<std::string> hash_of(const Program& program, const ServedModel& model) {
  Hasher hasher;
  for (const Function& function : program.functions) hasher.add(function.name + "\n" + to_text(function.graph));
  if (model.step) hasher.add(TRY(model.hash_of_weights()));
  return to_hex(hasher.digest());
}

}  // namespace

Result<std::unique_ptr<ServingRanks>> ServingRanks::start(const ServingRanksArguments& asked, const std::string& run,
                                                          const RankMachine& machine,
                                                          const std::vector<std::string>& lora) {
  TRY(check(asked, machine));
  std::unique_ptr<ServingRanks> ranks(new ServingRanks);
  ranks->asked_ = asked;
  ranks->machine_ = {machine.backend, share_of_threads(asked, machine.threads)};
  ranks->token_ = TRY(token_of(asked));
  RendezvousServerOptions options{.tls = asked.tls};
  if (!asked.rendezvous.empty()) options.bind = TRY(parse_address(asked.rendezvous));
  ranks->server_ = TRY(RendezvousServer::start(ranks->token_, options));
  ranks->client_ = TRY(RendezvousClient::connect(ranks->server_->address(), ranks->token_, {.tls = asked.tls}));
  for (std::int64_t rank = 1; asked.rendezvous.empty() && rank < asked.ranks; ++rank)
    TRY(ranks->start_process(rank, run, lora));
  return ranks;
}

Status ServingRanks::start_process(std::int64_t rank, const std::string& run, const std::vector<std::string>& lora) {
  Command command{.argv = {"/proc/self/exe", "serve", "--ranks", std::to_string(asked_.ranks), "--rank",
                           std::to_string(rank), "--rendezvous", to_string(server_->address()), "--backend",
                           machine_.backend, "--threads", std::to_string(machine_.threads)}};
  for (const std::string& word : lora) command.argv.push_back("--lora=" + word);
  if (!run.empty()) command.argv.insert(command.argv.end(), {"--", run});
  command.env.emplace_back(kTokenVariable, token_.hex());
  command.in = command.out = ChildStream::null();
  command.dies_with_parent = true;
  processes_.push_back(TRY(Process::start(command)));
  return {};
}

// Once there are steps the others end with them; one that does not is killed.
ServingRanks::~ServingRanks() {
  if (steps_ == nullptr) return;
  steps_.reset();
  for (Process& process : processes_) (void)process.wait(Seconds(2.0));
}

MachineUse ServingRanks::use() const { return {.ranks = asked_.ranks, .over_tcp = !asked_.rendezvous.empty()}; }

std::optional<Error> ServingRanks::ended() {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (const std::optional<Exit> exit = processes_[i].poll()) {
      return error(ErrorKind::io, "rank {} has ended, {}: without its part of the model there is no answer", i + 1,
                   exit->signal != 0 ? "it was " + to_string(*exit) : "with " + to_string(*exit));
    }
  }
  return {};
}

// Looks meanwhile whether a rank has failed.
Status ServingRanks::wait(const std::function<Result<bool>()>& is_there, std::int64_t rank, Seconds longest) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(longest.count());
  while (!TRY(is_there())) {
    for (const RendezvousEntry& entry : TRY(client_->list("failed/")))
      return error_from_text(entry.value, entry.key.substr(entry.key.find('/') + 1));
    for (const RendezvousLease& lease : TRY(client_->leases("here/"))) {
      if (!lease.live())
        return error(ErrorKind::io, "rank {}, {}, gives no sign of life", lease.name.substr(5), lease.who);
    }
    if (const std::optional<Error> gone = ended()) return *gone;
    if (std::chrono::steady_clock::now() >= until) {
      return error(ErrorKind::not_found, "rank {} did not come within {}", rank, to_string(longest))
          .hinted(fmt::format("start it with the same options and --rank {}", rank));
    }
    std::this_thread::sleep_for(kLook);
  }
  return {};
}

Status ServingRanks::connect(const ServedModel& model, EngineOptions& options, const Machine& machine,
                             std::vector<RankedAdapter> adapters) {
  options.parts = asked_.ranks;
  RankedEngine engine{options, std::move(adapters), model.step, asked_.rendezvous.empty(), {}};
  if (!machine.device->target().links.empty()) engine.link = machine.device->target().links[0];
  std::shared_ptr<Segment> segment;
  if (engine.one_machine) {
    segment = TRY(Segment::create(static_cast<std::int32_t>(asked_.ranks), token_.hex()));
    TRY(client_->set("segment", segment->place()));
  }
  TRY(client_->set("engine", to_text(engine)));
  for (std::int64_t rank = 1; rank < asked_.ranks; ++rank) {
    const auto is_here = [&]() -> Result<bool> {
      const std::vector<RendezvousLease> here = TRY(client_->leases(key_of("here", rank)));
      if (std::ranges::find(here, key_of("here", rank), &RendezvousLease::name) != here.end()) return true;
      return TRY(client_->get(key_of("ready", rank))).has_value();
    };
    TRY(wait(is_here, rank, kToCome));
  }
  transport_ = engine.one_machine ? TRY(ring_transport(segment, 0, {.patience = kPatience}))
                                  : TRY(over_tcp(asked_, *client_, token_));
  communicator_ = TRY(make_communicator(*transport_, serving_mesh(asked_.ranks)));
  machine.device->connect(communicator_.get());
  return {};
}

Status ServingRanks::lead(Engine& engine, const ServedModel& model) {
  const std::string own = TRY(hash_of(engine.program(), model));
  for (std::int64_t rank = 1; rank < asked_.ranks; ++rank) {
    std::optional<std::string> hash;
    const auto is_ready = [&]() -> Result<bool> {
      hash = TRY(client_->get(key_of("ready", rank)));
      return hash.has_value();
    };
    TRY(wait(is_ready, rank, kToLoad));
    if (*hash == own) continue;
    return error(ErrorKind::invalid, "rank {} has another model, other weights of its run, or another systole", rank)
        .hinted("the same model folder and the same version of systole on every machine");
  }
  TRY(client_->set("begin", "all"));
  steps_ = std::make_unique<LeadingSteps>(*communicator_);
  engine.lead(steps_.get());
  return {};
}

std::optional<Error> ServingRanks::lost() {
  if (std::optional<Error> gone = ended()) return gone;
  return steps_ == nullptr ? std::nullopt : steps_->failure();
}

Error ServingRanks::cause(const Error& failure) {
  for (int look = 0; look < 5; ++look) {
    if (const std::optional<Error> gone = ended()) return *gone;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (processes_.empty()) break;
  }
  return failure;
}

namespace {

// A rank that is not the first.
class FollowingRank {
 public:
  FollowingRank(const ServingRanksArguments& asked, const std::string& run, const std::vector<std::string>& lora,
                const RankMachine& machine, Clock& clock)
      : asked_(asked), run_(run), lora_(lora), on_(machine), clock_(clock) {}

  Status meet() {
    token_ = TRY(token_of(asked_));
    client_ = TRY(RendezvousClient::connect(TRY(parse_address(asked_.rendezvous)), token_,
                                            {.connect_time = kToCome, .tls = asked_.tls}));
    const LeaseTerms terms{.name = key_of("here", asked_.rank),
                           .who = fmt::format("process {} on {}", getpid(), host_name()),
                           .tls = asked_.tls};
    auto seat = LeaseKeeper::start(TRY(parse_address(asked_.rendezvous)), token_, terms,
                                   [](const Error&) { _exit(kExitNotSaved); });  // rank 0 is gone
    if (!seat.ok() && seat.error().kind == ErrorKind::exists) {
      return error(ErrorKind::exists, "rank {} is there already: {}", asked_.rank, seat.error().message)
          .hinted("another --rank on each machine");
    }
    seat_ = TRY(std::move(seat));
    return {};
  }
  // Makes the engine with its weights.
  Status open() {
    RankedEngine wanted = TRY(ranked_engine_from(TRY(client_->wait("engine", kToCome))));
    const bool names_step = wanted.step && run_.find('@') == run_.npos && !names_registered_model(run_);
    model_.emplace(TRY(find_model(names_step ? fmt::format("{}@{}", run_, *wanted.step) : run_, asked_.rank)));
    MachineUse use{.ranks = asked_.ranks, .over_tcp = !wanted.one_machine};
    if (wanted.link) use.link = RanksLink{{wanted.link->latency, wanted.link->bandwidth}, "rank 0's"};
    machine_ = TRY(machine_for(*model_, on_.backend, clock_, on_.threads, use));
    const auto rank = static_cast<std::int32_t>(asked_.rank);
    if (wanted.one_machine) {
      std::shared_ptr<Segment> segment = TRY(Segment::open(TRY(client_->wait("segment", kToCome)), token_.hex()));
      transport_ = TRY(ring_transport(std::move(segment), rank, {.patience = kPatience}));
    } else {
      transport_ = TRY(over_tcp(asked_, *client_, token_));
    }
    communicator_ = TRY(make_communicator(*transport_, serving_mesh(asked_.ranks)));
    machine_->device->connect(communicator_.get());
    // Not before: until the ranks are connected rank 0 does not look whether one has failed.
    const NamedAdapters adapters = TRY(adapters_of_rank(lora_, model_->spec, wanted.adapters));
    wanted.options.adapters = served_adapters(adapters.all);
    engine_ = TRY(open_engine(*model_, *machine_, wanted.options));
    TRY(write_adapters(engine_->executor(), adapters.all, asked_.rank));
    TRY(client_->set(key_of("ready", asked_.rank), TRY(hash_of(engine_->program(), *model_))));
    TRY(client_->wait("begin", kToLoad));  // others may load for longer than a collective waits
    seat_.reset();                         // from now on the transport knows who is there
    return {};
  }
  Status follow() {
    const SignalWatch watch;
    return follow_steps(
        engine_->executor(), *communicator_, [&watch] { return watch.count() < 2; },
        [this](const RankedWeights& weights) { return load_ranked(*engine_, *model_, weights); });
  }
  // Rank 0 says it.
  void tell(const Error& why) { (void)client_->set(key_of("failed", asked_.rank), to_text(why)); }
  static bool is_child() { return std::getenv(kTokenVariable) != nullptr; }

 private:
  const ServingRanksArguments& asked_;
  const std::string& run_;
  const std::vector<std::string>& lora_;
  const RankMachine& on_;
  Clock& clock_;
  RunToken token_;
  std::optional<RendezvousClient> client_;
  std::unique_ptr<LeaseKeeper> seat_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Communicator> communicator_;
  std::optional<ServedModel> model_;
  std::optional<Machine> machine_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace

Result<std::unique_ptr<ServingRanks>> start_ranks(const ServingRanksArguments& asked, const std::string& run,
                                                  const RankMachine& machine, const std::vector<std::string>& lora) {
  if (asked.ranks == 1 && asked.rendezvous.empty() && asked.rank == 0) return std::unique_ptr<ServingRanks>();
  return ServingRanks::start(asked, run, machine, lora);
}

Status check_without_ranks(const ServingRanksArguments& asked, bool given, const char* option) {
  if (asked.ranks == 1 || !given) return {};
  return error(ErrorKind::unsupported, "{} of a model that several ranks hold together", option)
      .hinted(fmt::format("leave out {} or --ranks", option));
}

Result<int> serve_as_rank(const ServingRanksArguments& asked, const std::string& run,
                          const std::vector<std::string>& lora, const RankMachine& machine, Clock& clock) {
  TRY(check(asked, machine));
  FollowingRank rank(asked, run, lora, machine, clock);
  TRY(rank.meet());
  if (const Status opened = rank.open(); !opened.ok()) {
    rank.tell(opened.error());
    if (rank.is_child()) return kExitNo;
    return opened.error();
  }
  const Status followed = rank.follow();
  if (followed.ok()) return kExitDone;
  if (rank.is_child()) return kExitNotSaved;
  return followed.error();
}

}  // namespace systole
